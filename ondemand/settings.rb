# frozen_string_literal: true

# The site's settings, and the check of what a learner asks for.
#
# The limits in a form hold in the browser only: anybody can send the portal anything. So submit.yml.erb and the scripts
# ask here again, and what leaves this module is a whole number or one of the site's own words.
require 'json'
require 'shellwords'
require 'yaml'

module CourseApp
  # What was asked for cannot be had. The portal shows the message.
  class Refused < StandardError; end

  ACCOUNT = /\A[\w][\w.+-]{0,63}\z/.freeze
  PARTITION = /\A[\w][\w.,+-]{0,63}\z/.freeze
  PATH = %r{\A[\w/.+@:${} -]*\z}.freeze
  ASKED = %w[cores hours gpus partition account].freeze

  module_function

  def site
    YAML.safe_load(File.read(File.join(__dir__, 'site.yml')))
  end

  # The limits of a number in the form.
  def limits(name)
    name == 'gpus' ? { 'least' => 0, 'most' => site.fetch('partitions').values.max, 'first' => 0 } : site.fetch(name)
  end

  # What a form asks for, checked; raises Refused.
  def asked(form)
    raw = ASKED.to_h { |name| [name, form.respond_to?("course_#{name}") ? form.public_send("course_#{name}").to_s : ''] }
    found = %w[cores hours gpus].to_h { |name| [name, number(name, raw[name])] }
    found['partition'] = partition(raw['partition'], found['gpus'])
    found['account'] = account(raw['account'].strip)
    found
  end

  def number(name, text)
    least, most = limits(name).fetch_values('least', 'most')
    return text.to_i if text.match?(/\A\d{1,6}\z/) && text.to_i.between?(least, most)

    raise Refused, "#{name}: a whole number from #{least} to #{most}, not #{short(text)}."
  end

  def partition(name, gpus)
    known = site.fetch('partitions')
    raise Refused, "partition: one of #{known.keys.join(', ')}, not #{short(name)}." unless known.key?(name)
    raise Refused, "partition: #{name.inspect} in site.yml is no name of a partition." unless name.match?(PARTITION)
    return name if gpus <= known[name]

    raise Refused, "gpus: a node of partition #{name} has #{known[name]}; #{gpus} were asked for."
  end

  def account(name)
    return nil if site.fetch('account') == 'no'
    return nil if name.empty? && site.fetch('account') == 'optional'
    return name if name.match?(ACCOUNT)

    raise Refused, "account: letters, digits and . _ + - only, not #{short(name)}."
  end

  def short(text)
    text.inspect[0, 40]
  end

  # The options of sbatch for what was asked. One task with many cores: MPI starts its ranks inside it, by itself.
  def slurm_options(asked)
    memory = site.fetch('memory_per_core').to_s
    options = ['--nodes=1', '--ntasks=1', "--cpus-per-task=#{asked['cores']}"]
    options << "--gpus-per-node=#{asked['gpus']}" if asked['gpus'].positive?
    options << "--mem-per-cpu=#{memory}" unless memory.empty?
    options
  end

  # A path of the site's in shell, with $HOME and $USER to be filled in.
  def path(name)
    text = site.fetch(name).to_s
    raise Refused, "#{name}: #{text.inspect} in site.yml is no path." unless text.match?(PATH)

    %("#{text}")
  end

  # A word of the site's in shell, as it stands.
  def word(name)
    Shellwords.escape(site.fetch(name).to_s)
  end

  # Shell lines after which the array `course_python` is the command of the Python that has the course.
  def environment
    lines = site.fetch('modules').map { |name| "module load #{Shellwords.escape(name)}" }
    case site.fetch('environment')
    when 'python' then lines << "course_python=(#{word('python')})"
    when 'conda'
      lines << ". #{word('conda')}/etc/profile.d/conda.sh" << "conda activate #{word('conda_environment')}"
      lines << 'course_python=(python)'
    when 'container'
      command = Shellwords.join([*site.fetch('container_command'), site.fetch('container')])
      lines << "course_python=(#{command} python)"
    else raise Refused, 'environment: python, conda or container, in site.yml.'
    end
    lines.join("\n")
  end
end
