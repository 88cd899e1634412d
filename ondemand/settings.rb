# frozen_string_literal: true

# The site's settings, and the check of what a learner asks for.
#
# The limits in a form hold in the browser only: anybody can send the portal anything. So submit.yml.erb and the scripts
# ask here again, and what leaves this module is a whole number or one of the site's own words.
#
# It is loaded anew by each of them: two copies of the app in one portal process, such as sys and dev, each have the
# settings beside their own file.
require 'json'
require 'shellwords'
require 'yaml'

module CourseApp
  # What was asked for cannot be had. The portal shows the message.
  class Rejected < StandardError; end

  ACCOUNT ||= /\A[\w][\w.+-]{0,63}\z/.freeze
  PARTITION ||= /\A[\w][\w.,+-]{0,63}\z/.freeze
  PATH ||= %r{\A[\w/.+@:${} -]*\z}.freeze
  CHOICES ||= %w[reservation qos constraint].freeze
  ASKED ||= %w[cores hours gpus partition account].freeze

  module_function

  def site
    YAML.safe_load(File.read(File.join(__dir__, 'site.yml')))
  end

  # The limits of a number in the form.
  def limits(name)
    return site.fetch(name) unless name == 'gpus'

    { 'least' => 0, 'most' => partitions.values.map { |one| one.fetch('gpus') }.max, 'first' => 0 }
  end

  # Name => what the site says of each partition; a number alone is that of its GPUs.
  def partitions
    site.fetch('partitions').transform_values { |one| { 'gpus' => 0 }.merge(one.is_a?(Hash) ? one : { 'gpus' => one.to_i }) }
  end

  # What a form chose as account: where the portal lists the learner's own, that field has the portal's name.
  def chosen_account(form)
    form.respond_to?('auto_accounts') ? form.auto_accounts.to_s : ''
  end

  # What a form asks for, checked; raises Rejected.
  def asked(form)
    raw = ASKED.to_h { |name| [name, form.respond_to?("course_#{name}") ? form.public_send("course_#{name}").to_s : ''] }
    found = %w[cores hours gpus].to_h { |name| [name, number(name, raw[name])] }
    found['partition'] = partition(raw['partition'], found['gpus'])
    found['account'] = account((site.fetch('account') == 'auto' ? chosen_account(form) : raw['account']).strip)
    found
  end

  def number(name, text)
    least, most = limits(name).fetch_values('least', 'most')
    return text.to_i if text.match?(/\A\d{1,6}\z/) && text.to_i.between?(least, most)

    raise Rejected, "#{name}: a whole number from #{least} to #{most}, not #{short(text)}."
  end

  def partition(name, gpus)
    known = partitions
    raise Rejected, "partition: one of #{known.keys.join(', ')}, not #{short(name)}." unless known.key?(name)
    raise Rejected, "partition: #{name.inspect} in site.yml is not a name of a partition." unless name.match?(PARTITION)
    most = known[name].fetch('gpus')
    return name if gpus <= most

    raise Rejected, "gpus: a node of partition #{name} has #{most}; #{gpus} were asked for."
  end

  def account(name)
    return nil if site.fetch('account') == 'no'
    return nil if name.empty? && %w[optional auto].include?(site.fetch('account'))
    return name if name.match?(ACCOUNT)

    raise Rejected, "account: letters, digits and . _ + - only, not #{short(name)}."
  end

  def short(text)
    text.inspect[0, 40]
  end

  # The options of sbatch for what was asked. One task with many cores: MPI starts its ranks inside it, by itself.
  def slurm_options(asked)
    own = partitions.fetch(asked['partition'])
    memory = own.fetch('memory_per_core', site.fetch('memory_per_core')).to_s
    gpus = [own['gpu_type'], asked['gpus']].compact.join(':')
    options = ['--nodes=1', '--ntasks=1', "--cpus-per-task=#{asked['cores']}"]
    options << "--gpus-per-node=#{gpus}" if asked['gpus'].positive?
    options << "--mem-per-cpu=#{memory}" unless memory.empty?
    options += CHOICES.filter_map { |name| "--#{name}=#{own[name]}" if own[name] }
    options + own.fetch('options', [])
  end

  # Shell lines that hand on to the jobs of lessons where this job was allowed to run.
  def exports(asked)
    own = partitions.fetch(asked['partition'])
    said = { 'partition' => asked['partition'], 'account' => asked['account'] }
    said.merge!(CHOICES.to_h { |name| [name, own[name]] })
    said.compact.map { |name, value| "export SBATCH_#{name.upcase}=#{Shellwords.escape(value.to_s)}" }.join("\n")
  end

  # A path of the site's in shell, with $HOME and $USER to be filled in.
  def path(name)
    text = site.fetch(name).to_s
    raise Rejected, "#{name}: #{text.inspect} in site.yml is not a path." unless text.match?(PATH)

    %("#{text}")
  end

  # A word of the site's in shell, as it stands.
  def word(name)
    Shellwords.escape(site.fetch(name).to_s)
  end

  # Shell lines after which the array `course_python` is the command of the Python that has the course.
  def environment
    lines = site.fetch('modules').map do |name|
      module_name = Shellwords.escape(name)
      "module load #{module_name} || { echo \"The course: module #{module_name} did not load. Settings: modules, in site.yml.\"; exit 1; }"
    end
    case site.fetch('environment')
    when 'python' then lines << "course_python=(#{word('python')})"
    when 'conda'
      lines << ". #{word('conda')}/etc/profile.d/conda.sh" << "conda activate #{word('conda_environment')}"
      lines << 'course_python=(python)'
    when 'container'
      command = Shellwords.join([*site.fetch('container_command'), site.fetch('container')])
      lines << "course_python=(#{command} python)"
    else raise Rejected, 'environment: python, conda or container, in site.yml.'
    end
    lines.join("\n")
  end
end
