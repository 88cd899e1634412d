# frozen_string_literal: true

# What the form, the job and its scripts take from site.yml, and the check of what a learner asks for.
#
# The limits in a form hold in the browser only: anybody can send the portal anything. So submit.yml.erb and the scripts
# ask here again, and what leaves this module is a whole number or one of the site's own words.
#
# It is loaded anew by each of them, and forgets what was there: two copies of the app in one portal process, such as sys
# and dev, may be of two versions, and each has the settings beside its own file.
Object.send(:remove_const, :CourseApp) if defined?(CourseApp)
load File.join(__dir__, 'site_file.rb')

module CourseApp
  # What was asked for cannot be had. The portal shows the message.
  class Rejected < StandardError; end

  ACCOUNT = /\A\w[\w.+@:-]{0,63}\z/
  CHOSEN = %w[reservation qos constraint].freeze
  ASKED = %w[cores hours gpus partition account].freeze

  module_function

  # The site's settings; raises SiteMistake.
  def site
    file = SiteFile.new(File.join(__dir__, 'site.yml'))
    return file.values if file.mistakes.empty?

    raise SiteMistake, file.mistakes.map { |mistake| sentence(mistake) }.join(' ')
  end

  def sentence(mistake)
    key = "In site.yml, `#{mistake.key}`"
    right = mistake.right
    case mistake.reason
    when :twice then "#{key} is written twice."
    when :unknown then "#{key} is not a setting#{right ? ". Did you mean `#{right}`?" : ' of this app.'}"
    when :missing then "#{key} is missing. #{what_is_right(right)}"
    when :wrong then "#{key} is #{as_yaml(mistake.given)}. #{what_is_right(right)}"
    end
  end

  def what_is_right(setting)
    "It should be #{MEANINGS[setting.kind]}#{", such as #{as_yaml(setting.example)}" if setting.example}."
  end

  def as_yaml(value)
    value = JSON.generate(value).delete('"').gsub(/[:,]/) { |mark| "#{mark} " } unless value.is_a?(String)
    "`#{value[0, 80].gsub(/[[:cntrl:]]/, ' ')}`"
  end

  # The limits of a number in the form.
  def limits(name)
    return site.fetch(name) unless name == 'gpus'

    { 'least' => 0, 'most' => partitions.values.map { |own| own.fetch('gpus') }.max, 'first' => 0 }
  end

  def partitions
    site.fetch('partitions')
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
    most = known[name].fetch('gpus')
    return name if gpus <= most

    raise Rejected, "gpus: a node of partition #{name} has #{most}; #{gpus} were asked for."
  end

  def account(name)
    wanted = site.fetch('account')
    return nil if wanted == 'no' || (name.empty? && wanted != 'needed')
    return name if name.match?(ACCOUNT)
    raise Rejected, 'account: the jobs of this site need one.' if name.empty?

    raise Rejected, "account: letters, digits and . _ + - @ : only, not #{short(name)}."
  end

  def short(text)
    text.inspect[0, 40]
  end

  # The options of sbatch for what was asked. One task with many cores: MPI starts its ranks inside it, by itself.
  def slurm_options(asked)
    own = partitions.fetch(asked['partition'])
    memory = own['memory_per_core'] || site.fetch('memory_per_core')
    gpus = [own['gpu_type'], asked['gpus']].compact.join(':')
    options = ['--nodes=1', '--ntasks=1', "--cpus-per-task=#{asked['cores']}"]
    options << "--gpus-per-node=#{gpus}" if asked['gpus'].positive?
    options << "--mem-per-cpu=#{memory}" unless memory.empty?
    options += CHOSEN.filter_map { |name| "--#{name}=#{own[name]}" if own[name] }
    options + own.fetch('options')
  end

  # Shell lines that hand on to the jobs of lessons where this job was allowed to run.
  def exports(asked)
    own = partitions.fetch(asked['partition'])
    handed = { 'partition' => asked['partition'], 'account' => asked['account'] }.merge(own.slice(*CHOSEN)).compact
    handed.map { |name, value| "export SBATCH_#{name.upcase}=#{Shellwords.escape(value)}" }.join("\n")
  end

  # A path of the site's in shell. ~ and variables are filled in on the compute node; all else stands for itself.
  def path(name)
    parts = site.fetch(name).sub(%r{\A~(?=/|\z)}, '$HOME').split(/(#{VARIABLE})/).reject(&:empty?)
    parts.map { |part| part.match?(VARIABLE) ? variable(part) : Shellwords.escape(part) }.join
  end

  def variable(text)
    %("${#{text.delete('${}')}:?is not set on this node, but site.yml needs it}")
  end

  # A word of the site's in shell, as it stands.
  def word(name)
    Shellwords.escape(site.fetch(name))
  end

  # Shell lines after which the array `course_python` is the command of the Python that has the course.
  def environment
    modules = site.fetch('modules').map { |name| load_line(Shellwords.escape(name)) }
    modules << 'unset PYTHONPATH PYTHONHOME # else packages of theirs would come first' unless modules.empty?
    [*modules, *python_lines].join("\n")
  end

  # Whether learners get the notebooks of the container's image. A folder of the node by that name is a different one.
  def release_in_image?
    site.fetch('environment') == 'container' && site.fetch('release') == SETTINGS.fetch('release').default
  end

  def load_line(name)
    "module load #{name} || { echo \"The course: module #{name} did not load. Settings: modules, in site.yml.\"; exit 1; }"
  end

  def python_lines
    case site.fetch('environment')
    when 'python' then ["course_python=(\"$(without_links #{path('python')})\")"]
    when 'conda'
      [". #{path('conda')}/etc/profile.d/conda.sh", "conda activate #{word('conda_environment')}", 'course_python=(python)']
    when 'container'
      command = Shellwords.join(site.fetch('container_command'))
      ["course_python=(#{command} #{path('container')} #{path('container_python')})"]
    end
  end
end
