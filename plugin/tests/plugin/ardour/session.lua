-- Creates a session with one stereo track and a VST3 plugin on it. Arguments: FOLDER NAME RATE PLUGIN
local folder, name, rate, plugin = arg[1], arg[2], tonumber(arg[3]), arg[4]
AudioEngine:set_backend("None (Dummy)", "", "")
AudioEngine:set_sample_rate(rate)
local session = assert(create_session(folder, name, rate))
local last, normal = ARDOUR.PresentationInfo.max_order, ARDOUR.TrackMode.Normal
for track in session:new_audio_track(2, 2, nil, 1, "track", last, normal, true):iter() do
    local processor = ARDOUR.LuaAPI.new_plugin(session, plugin, ARDOUR.PluginType.VST3, "")
    assert(not processor:isnil(), plugin .. " is not among the scanned plugins")
    assert(track:add_processor_by_index(processor, 0, nil, true) == 0)
end
-- Lets the new plugin initialise before the session is saved.
ARDOUR.LuaAPI.usleep(1000000)
session:save_state("")
close_session()
quit()
