-- Adds a VST3 plugin to a track, loads a preset, and opens the session again. Prints all parameter values after each step.
-- Arguments: FOLDER NAME PLUGIN PRESET
local folder, name, plugin, label = arg[1], arg[2], arg[3], arg[4]
AudioEngine:set_backend("None (Dummy)", "", "")
local session = assert(create_session(folder, name, 48000))
local last, normal = ARDOUR.PresentationInfo.max_order, ARDOUR.TrackMode.Normal

-- Waits for a few blocks, then prints all values.
local function show(when, processor)
    ARDOUR.LuaAPI.usleep(1000000)
    local description = processor:to_insert():plugin(0)
    for index = 0, description:parameter_count() - 1 do
        local value = ARDOUR.LuaAPI.get_processor_param(processor, index)
        io.stderr:write(string.format("%s:%s=%.4f\n", when, description:parameter_label(index), value))
    end
end

for track in session:new_audio_track(2, 2, nil, 1, "track", last, normal, true):iter() do
    local processor = ARDOUR.LuaAPI.new_plugin(session, plugin, ARDOUR.PluginType.VST3, "")
    assert(not processor:isnil(), plugin .. " is not among the scanned plugins")
    assert(track:add_processor_by_index(processor, 0, nil, true) == 0)
    show("new", processor)
    local loader = processor:to_insert():plugin(0)
    assert(loader:load_preset(loader:preset_by_label(label)))
    show("loaded", processor)
end
session:save_state("")
close_session()
collectgarbage()

session = assert(load_session(folder, name))
for route in session:get_routes():iter() do
    local processor = route:nth_plugin(0)
    if not processor:isnil() then
        show("reopened", processor)
    end
end
close_session()
quit()
