# frozen_string_literal: true

# What the portal does with an app of the kind batch_connect, as far as the tests need it:
#   ruby portal_here.rb APP < sessions.json
# Each session is a form and a folder, and may name another copy of the app: form.yml.erb, submit.yml.erb and the scripts are
# rendered into it, and, where the session has a "connection", view.html.erb. Prints for each session its rejection, or null.
# With `--site`, each "app" is read alone: prints the values of its site.yml and the mistakes in it.
require 'erb'
require 'fileutils'
require 'json'
require 'ostruct'
require 'pathname'
require 'yaml'

def rendered(file, binding = nil)
  erb = ERB.new(file.read, trim_mode: '-')
  erb.filename = file.to_s
  erb.result(binding)
end

def binding_of(object)
  object.instance_eval { binding }
end

# The scripts see the session and the form; as in the portal, what holds the form has the methods of Enumerable too.
class Context < OpenStruct
  include Enumerable
end

Scripts = Struct.new(:session, :context) do
  def get_binding
    binding
  end
end

def stage(app, staged, what)
  form = YAML.safe_load(rendered(app.join('form.yml.erb')))
  context = Context.new(what.fetch('form'))
  submit = YAML.safe_load(rendered(app.join('submit.yml.erb'), binding_of(context)))
  session = OpenStruct.new(id: 'a-session', staged_root: staged, app: OpenStruct.new(root: app))
  scripts = Scripts.new(session, context)
  app.join('template').children.select(&:file?).each do |file|
    target = staged.join(file.basename.to_s.delete_suffix('.erb'))
    FileUtils.cp(file, target, preserve: true)
    target.write(ERB.new(file.read, trim_mode: '-').result(scripts.get_binding)) if file.extname == '.erb'
  end
  staged.join('form.json').write(JSON.generate(form))
  staged.join('submit.json').write(JSON.generate(submit))
  return unless what['connection']

  view = OpenStruct.new(what['connection'])
  staged.join('view.html').write(rendered(app.join('view.html.erb'), binding_of(view)))
end

def site_of(app)
  load app.join('settings.rb')
  file = CourseApp::SiteFile.new(app.join('site.yml').to_s)
  { values: file.values, mistakes: file.mistakes.map { |mistake| [mistake.reason, mistake.key] } }
rescue StandardError => e
  { values: nil, mistakes: [[e.class.name, e.message]] }
end

given = JSON.parse($stdin.read)
answers =
  if ARGV.delete('--site')
    given.map { |what| site_of(Pathname.new(what.fetch('app'))) }
  else
    given.map do |what|
      stage(Pathname.new(what.fetch('app', ARGV.first)), Pathname.new(what.fetch('staged')), what)
      nil
    rescue StandardError => e # as the portal does, which shows the message
      e.message
    end
  end
puts JSON.generate(answers)
