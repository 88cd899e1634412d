# frozen_string_literal: true

# Reads site.yml: a value for each setting, and what is wrong with the others.
#
# Each word is taken as it is written in the file. YAML by itself would turn `account: no` into false, and `branch: 2026.10`
# into 2026.1.
require 'did_you_mean'
require 'json'
require 'shellwords'
require 'uri'
require 'yaml'

module CourseApp
  # Something in site.yml is wrong. The portal shows the message where its form would be.
  class SiteMistake < StandardError; end

  # One setting: its kind, what it is when site.yml leaves it out, an example, and the environments that need it there.
  Setting = Struct.new(:kind, :default, :example, :needed)

  # One mistake in site.yml: :missing, :unknown, :wrong or :twice; its key, what is written there, and the setting that it
  # should be. For an unknown key, that is the name of the nearest known one.
  Mistake = Struct.new(:reason, :key, :given, :right)

  VARIABLE = /\$(?:[A-Za-z_]\w*|\{[A-Za-z_]\w*\})/
  ENVIRONMENTS = %w[python conda container].freeze
  LISTEN = %q(getent ahostsv4 "$host" | awk '$1 !~ /^127[.]/ {print $1; exit}')

  def self.optional(kind, default, example = default)
    Setting.new(kind, default, example, [])
  end

  def self.needed(kind, example, environments = ENVIRONMENTS, default = nil)
    Setting.new(kind, default, example, environments)
  end

  SETTINGS = {
    'cluster' => needed(:clusters, 'my_cluster'),
    'portal' => needed(:origin, 'https://ondemand.example.org'),
    'release' => needed(:source, '/sw/course/current', %w[python conda], '/opt/course'),
    'branch' => optional(:line, ''),
    'without' => optional(:names, ['src']),
    'copy' => optional(:path, '$HOME/course'),
    'shared' => optional(:path, '$HOME/.local/share/course/ranks'),
    'data' => optional(:path, '', '/sw/course/data'),
    'environment' => optional(:environment, 'python', nil),
    'modules' => optional(:names, [], ['mpich/4.2']),
    'python' => optional(:program, '', '/sw/course/current/.venv/bin/python'),
    'conda' => needed(:path, '/sw/miniforge3', ['conda']),
    'conda_environment' => optional(:line, 'course'),
    'container_command' => optional(:command, %w[apptainer exec --nv]),
    'container' => needed(:image, '/sw/course/course.sif', ['container']),
    'container_python' => optional(:program, 'python'),
    'cores' => optional(:range, { 'least' => 2, 'most' => 16, 'first' => 4 }),
    'hours' => optional(:range, { 'least' => 1, 'most' => 8, 'first' => 2 }),
    'partitions' => needed(:partitions, { 'compute' => 0, 'gpu' => 4 }),
    'account' => optional(:account, 'optional', nil),
    'memory_per_core' => optional(:memory, '2G'),
    'host' => optional(:line, 'hostname'),
    'listen' => optional(:line, LISTEN),
    'address' => optional(:line, LISTEN),
    'ports' => optional(:ports, [20_000, 29_999])
  }.freeze

  RANGE = %w[least most first].to_h { |name| [name, optional(:count, nil, '4')] }.freeze

  PARTITION = {
    'gpus' => optional(:count, 0, '4'),
    'gpu_type' => optional(:word, nil, 'a100'),
    'memory_per_core' => optional(:memory, nil, '8G'),
    'reservation' => optional(:word, nil, 'course-friday'),
    'qos' => optional(:word, nil, 'teaching'),
    'constraint' => optional(:word, nil, 'nvlink&ib'),
    'options' => optional(:options, [], ['--exclusive'])
  }.freeze

  # The choices of a setting, with other words that mean the same.
  CHOICES = {
    environment: { 'python' => %w[venv], 'conda' => [], 'container' => %w[apptainer] },
    account: { 'no' => %w[false off none], 'optional' => [], 'needed' => %w[yes true on required], 'auto' => [] }
  }.freeze

  # What a setting of each kind should be.
  MEANINGS = {
    clusters: 'the name of a cluster, or a list of names',
    origin: 'the address of the portal',
    source: 'a folder or, with a `branch`, a git repository',
    line: 'text on one line',
    word: 'one word',
    names: 'a list of names',
    path: 'a path that begins with `/`, `~/` or a variable such as `$HOME`, without commands in it',
    program: 'the path of a Python, or its name',
    image: 'the path or the address of an image',
    command: 'the words of a command',
    options: 'a list of options of sbatch, each beginning with `-`',
    range: 'whole numbers from 1 on, the least, the most and the first choice, which lies between them',
    count: 'a whole number',
    ports: 'the first and the last port, from 1 to 65535',
    memory: 'a whole number with K, M, G or T',
    partitions: 'the names of partitions, each with the number of GPUs of a node, or with settings of its own',
    partition: 'the number of GPUs of a node, or settings such as `gpus` and `qos`',
    environment: 'python, conda or container',
    account: 'no, optional, needed or auto'
  }.freeze

  # The file, read. `values` has all settings, and is of use only without `mistakes`.
  class SiteFile
    attr_reader :values, :mistakes

    def initialize(path)
      @mistakes = []
      text = File.read(path, encoding: 'bom|utf-8')
      foreign = text.lines.index { |line| !line.valid_encoding? }
      raise SiteMistake, "#{path}, line #{foreign + 1}, has letters that are not UTF-8." if foreign

      root = YAML.parse(text, filename: path)
      given = root ? as_written(root.root) : {}
      raise SiteMistake, "#{path} should hold settings, one a line, such as `cluster: my_cluster`." unless given.is_a?(Hash)

      read(given)
    rescue Psych::SyntaxError => e
      raise SiteMistake, "#{path} is not YAML from line #{e.line} on: #{[e.problem, e.context].compact.join(' ')}."
    rescue SystemCallError => e
      raise SiteMistake, "The settings of the course's app cannot be read: #{e.message}."
    end

    private

    def as_written(node)
      case node
      when Psych::Nodes::Mapping
        pairs = node.children.each_slice(2).map { |key, value| [as_written(key), as_written(value)] }
        pairs.map(&:first).tally.each { |key, times| note(:twice, key) if times > 1 }
        pairs.to_h
      when Psych::Nodes::Sequence then node.children.map { |child| as_written(child) }
      when Psych::Nodes::Alias then "*#{node.anchor}"
      else node.plain && %w[~ null].include?(node.value) ? '' : node.value.strip
      end
    end

    def read(given)
      @environment = choice(given['environment'], SETTINGS['environment']) || SETTINGS['environment'].default
      @values = fields(SETTINGS, given)
      own_python if @mistakes.empty? && @environment == 'python' && @values['python'].empty?
    end

    # A release that is a folder has a Python of its own.
    def own_python
      return note(:missing, 'python', nil, SETTINGS['python']) unless @values['branch'].empty?

      @values['python'] = File.join(@values['release'], '.venv', 'bin', 'python')
    end

    def fields(table, given, prefix = '')
      (given.keys - table.keys).each do |key|
        note(:unknown, "#{prefix}#{key}", nil, DidYouMean::SpellChecker.new(dictionary: table.keys).correct(key.to_s).first)
      end
      table.to_h { |key, setting| [key, value(setting, "#{prefix}#{key}", given[key])] }
    end

    def value(setting, key, given)
      found = send(setting.kind, given, setting, key) if given
      return found unless found.nil?
      return note(:wrong, key, given, setting) unless given.nil? || given.empty?
      return note(:missing, key, nil, setting) if setting.needed.include?(@environment)

      setting.default
    end

    def note(*mistake)
      @mistakes << Mistake.new(*mistake)
      nil
    end

    # The kinds. Each returns a value, or nil if what is given is no such thing.

    def line(given, *)
      given if given.is_a?(String) && given.match?(/\A[^[:cntrl:]]+\z/)
    end

    def word(given, *)
      given if line(given)&.match?(/\A\S+\z/)
    end

    def names(given, *)
      parts = given.is_a?(String) ? given.split(/[\s,]+/) : given
      parts if parts.is_a?(Array) && parts.all? { |part| line(part) }
    end

    def clusters(given, *)
      found = names(given) || []
      found.size > 1 ? found : found.first
    end

    def command(given, *)
      parts = given.is_a?(String) ? Shellwords.split(given) : given
      parts if parts.is_a?(Array) && parts.any? && parts.all? { |part| line(part) }
    rescue ArgumentError # a quotation mark without its partner
      nil
    end

    def options(given, *)
      found = command(given)
      found if found&.first&.start_with?('-')
    end

    def path(given, *)
      return unless line(given)&.match?(%r{\A(?:/|~(?:/|\z)|\$\{?\w)})

      given unless given.gsub(VARIABLE, '').match?(/[$`]/)
    end

    def program(given, *)
      line(given)&.match?(/\A[\w.+-]+\z/) ? given : path(given)
    end

    def image(given, *)
      line(given)&.match?(%r{\A[\w-]+://\S+\z}) ? given : path(given)
    end

    def source(given, *)
      word(given)&.match?(/\A[\w.@+-]+:/) ? given : path(given)
    end

    def origin(given, *)
      uri = URI.parse(given.include?('://') ? given : "https://#{given}").normalize if word(given)
      return unless uri.is_a?(URI::HTTP) && uri.host.to_s.match?(/\A[\w.:\[\]-]+\z/)

      "#{uri.scheme}://#{uri.host}#{":#{uri.port}" unless uri.port == uri.default_port}"
    rescue URI::InvalidURIError
      nil
    end

    def choice(given, setting, *)
      CHOICES.fetch(setting.kind).find { |name, others| [name, *others].include?(given.downcase) }&.first if line(given)
    end
    alias environment choice
    alias account choice

    def memory(given, *)
      return given if given.empty?

      number, unit = given.match(/\A(\d{1,9}) ?(?:([KMGT])(?:i?B)?)?\z/i)&.captures if line(given)
      "#{number}#{unit&.upcase}" if number
    end

    def numbers(given)
      parts = given.is_a?(String) ? given.split(/\s*(?:[-–,]|\bto\b)\s*|\s+/) : given
      parts.map(&:to_i) if parts.is_a?(Array) && parts.all? { |part| line(part)&.match?(/\A\d{1,6}\z/) }
    end

    def count(given, *)
      found = numbers(given) || []
      found.first if found.size == 1
    end

    def ports(given, *)
      found = numbers(given) || []
      found if found.size == 2 && found.first <= found.last && found.all? { |port| port.between?(1, 65_535) }
    end

    # The most; or the least and the most; or these by name, with the first choice.
    def range(given, setting, key)
      known = @mistakes.size
      least, most, first = given.is_a?(Hash) ? fields(RANGE, given, "#{key}: ").values : ends(numbers(given) || [])
      return setting.default if @mistakes.size > known # they are noted with keys of their own

      fitting(least, most, first, setting.default) if most || least || first
    end

    def ends(numbers)
      { 1 => [nil, *numbers], 2 => numbers }.fetch(numbers.size, [])
    end

    def fitting(least, most, first, default)
      most ||= [default['most'], least.to_i].max
      least ||= [default['least'], most].min
      return unless least.positive? && least <= most

      first ||= default['first'].clamp(least, most)
      { 'least' => least, 'most' => most, 'first' => first } if first.between?(least, most)
    end

    def partitions(given, _setting, key)
      given = names(given) if given.is_a?(String)
      given = given.map { |entry| by_name(entry) }.reduce({}, :merge) if given.is_a?(Array)
      return if given.nil? || given.empty?
      return unless given.keys.all? { |name| line(name)&.match?(/\A\w[\w.,+@:-]{0,63}\z/) }

      given.to_h { |name, own| [name, partition(own, "#{key}: #{name}")] }
    end

    def by_name(entry)
      return { entry => '' } unless entry.is_a?(Hash)
      return entry unless entry['name'].is_a?(String)

      { entry['name'] => entry.reject { |key| key == 'name' } }
    end

    def partition(own, key)
      return fields(PARTITION, own, "#{key}: ") if own.is_a?(Hash)
      return fields(PARTITION, { 'gpus' => own }) if own.empty? || count(own)

      note(:wrong, key, own, Setting.new(:partition, nil, { 'gpus' => 4 }))
    end
  end
end
