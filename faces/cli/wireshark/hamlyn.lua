-- Hamlyn for Wireshark: the packets that `hamlyn trace` writes, and what can be seen of datagrams that were taken off the wire.
--
--   wireshark -X lua_script:hamlyn.lua trace.pcapng      or put this file among Wireshark's personal plugins
--
-- The bytes are those of docs/protocol.md. All of them may be damaged: nothing is read before it is known to be there,
-- and what does not fit is marked, with what is wrong with it.
-- Written for Lua 5.2 to 5.4, so without bit operators and without the library `bit`.

local hamlyn = Proto("hamlyn", "Hamlyn")
local datagram = Proto("hamlyn_datagram", "Hamlyn datagram")

local RECORD_BYTES = 32
local HEADER_BYTES = 20
local RUN_BYTES = 8
local NACK_BYTES = 11
local REFUSED_BYTES = 5
local TAIL_BYTES = 7
local SHORT_BYTES = 16
local METADATA_MAX = 60
local PACKET_HEADER_BYTES = 16
local NO_CHANNEL = 0xffff
local FAST_INDEX = 0xffff
local PLACED = 2
local DOOR_PORT = 7407

local answers = { [0] = "taken, but for some packets", [1] = "no room", [2] = "not resident",
    [3] = "taken, but for some packets: more follow", [4] = "leaving" }
local refusals = {
    [0] = "the interface is not set up", [1] = "the host's handshake stopped", [2] = "no such slot",
    [3] = "the slot was closed", [4] = "the slot was revoked", [5] = "wrong key", [6] = "outside the slot's bounds",
    [7] = "no such metadata entry", [8] = "fast mode to a paranoid slot", [9] = "outside the entry's limits",
    [10] = "wrong key for the entry", [11] = "the one-shot entry is spent", [12] = "the slot does not grant this",
    [13] = "unknown kind of packet", [14] = "unknown flag", [15] = "metadata too long or not allowed",
    [16] = "the place is in use", [17] = "placed without a grant",
}
local kinds = { [0] = "write" }
local datagram_kinds = {
    [0] = "data", [1] = "initiation", [2] = "response", [3] = "cookie", [4] = "probe", [5] = "probe answer", [6] = "payload",
}
local modes = { [1] = "the cluster's secret", [2] = "keys of hosts", [3] = "none" }

local f = {
    -- The record before each frame of a trace.
    sent = ProtoField.bool("hamlyn.sent", "Sent by the traced side"),
    encrypted = ProtoField.bool("hamlyn.encrypted", "Encrypted in the network"),
    path = ProtoField.uint8("hamlyn.path", "Path"),
    process = ProtoField.uint32("hamlyn.process", "Traced process"),
    own_association = ProtoField.uint32("hamlyn.association", "Association of the traced side", base.HEX),
    peer_association = ProtoField.uint32("hamlyn.peer.association", "Association of the peer", base.HEX),
    peer_interface = ProtoField.uint64("hamlyn.peer.interface", "Interface of the peer", base.HEX),
    peer_host = ProtoField.uint32("hamlyn.peer.host", "Host of the peer", base.HEX),
    peer_user = ProtoField.uint32("hamlyn.peer.user", "User of the peer"),
    -- The header of a frame.
    stamp = ProtoField.uint32("hamlyn.timestamp", "Timestamp, in 64 ns"),
    echo = ProtoField.uint32("hamlyn.echo", "Echo of a timestamp, in 64 ns"),
    hold = ProtoField.uint16("hamlyn.hold", "Hold, in µs"),
    channel = ProtoField.uint16("hamlyn.channel", "Channel"),
    sequence = ProtoField.uint32("hamlyn.sequence", "Sequence"),
    flags = ProtoField.uint8("hamlyn.flags", "Flags", base.HEX),
    flag_echo = ProtoField.bool("hamlyn.flags.echo", "The echo is one", 8, nil, 1),
    flag_ask = ProtoField.bool("hamlyn.flags.ask", "Acknowledge at once", 8, nil, 2),
    flag_closing = ProtoField.bool("hamlyn.flags.closing", "The sender has closed", 8, nil, 4),
    runs = ProtoField.uint8("hamlyn.runs", "Runs of acknowledgements"),
    nacks = ProtoField.uint8("hamlyn.nacks", "NACKs"),
    format = ProtoField.uint8("hamlyn.format", "Format"),
    -- Acknowledgements.
    run = ProtoField.bytes("hamlyn.run", "Acknowledged"),
    run_first = ProtoField.uint16("hamlyn.run.first", "First channel"),
    run_count = ProtoField.uint16("hamlyn.run.count", "Channels"),
    run_sequence = ProtoField.uint32("hamlyn.run.sequence", "Sequence"),
    nack = ProtoField.bytes("hamlyn.nack", "NACK"),
    nack_channel = ProtoField.uint16("hamlyn.nack.channel", "Channel"),
    nack_sequence = ProtoField.uint32("hamlyn.nack.sequence", "Sequence"),
    nack_stamp = ProtoField.uint32("hamlyn.nack.timestamp", "Timestamp that is answered"),
    nack_reason = ProtoField.uint8("hamlyn.nack.reason", "Reason", base.DEC, answers),
    refused_first = ProtoField.uint16("hamlyn.refused.first", "First refused packet"),
    refused_count = ProtoField.uint16("hamlyn.refused.count", "Refused packets"),
    refused_reason = ProtoField.uint8("hamlyn.refused.reason", "Why", base.DEC, refusals),
    -- Packets. What a packet leaves out is that of the one before, and shown as if it were there.
    packets = ProtoField.uint16("hamlyn.packets", "Packets"),
    packet = ProtoField.bytes("hamlyn.packet", "Packet"),
    form = ProtoField.uint8("hamlyn.packet.form", "Form", base.HEX),
    general = ProtoField.bool("hamlyn.packet.general", "General", 8, nil, 0x40),
    slot = ProtoField.uint32("hamlyn.packet.slot", "Slot", base.HEX),
    index = ProtoField.uint16("hamlyn.packet.index", "Metadata entry", base.DEC),
    fast = ProtoField.bool("hamlyn.packet.fast", "Fast mode"),
    key = ProtoField.uint64("hamlyn.packet.key", "Key", base.HEX),
    offset = ProtoField.uint64("hamlyn.packet.offset", "Offset"),
    word = ProtoField.uint64("hamlyn.packet.word", "Word (fast mode) or delta", base.HEX),
    kind = ProtoField.uint8("hamlyn.packet.kind", "Kind", base.DEC, kinds),
    packet_flags = ProtoField.uint8("hamlyn.packet.flags", "Flags", base.HEX),
    silent = ProtoField.bool("hamlyn.packet.flags.silent", "Not announced", 8, nil, 1),
    placed = ProtoField.bool("hamlyn.packet.flags.placed", "In its place already", 8, nil, PLACED),
    length = ProtoField.uint32("hamlyn.packet.length", "Bytes of data"),
    metadata = ProtoField.bytes("hamlyn.packet.metadata", "Metadata"),
    data = ProtoField.bytes("hamlyn.packet.data", "Data"),
    padding = ProtoField.bytes("hamlyn.padding", "Padding"),
}
hamlyn.fields = f

local d = {
    version = ProtoField.uint8("hamlyn_datagram.version", "Version", base.DEC, nil, 0xf0),
    kind = ProtoField.uint8("hamlyn_datagram.kind", "Kind", base.DEC, datagram_kinds, 0x0f),
    phase = ProtoField.uint8("hamlyn_datagram.phase", "Phase of the key", base.DEC, nil, 0x01),
    path = ProtoField.uint8("hamlyn_datagram.path", "Path", base.DEC, nil, 0xf0),
    length = ProtoField.uint16("hamlyn_datagram.length", "Length"),
    association = ProtoField.uint32("hamlyn_datagram.association", "Association of the receiver", base.HEX),
    number = ProtoField.uint64("hamlyn_datagram.number", "Packet number, or time of an initiation in ms"),
    mode = ProtoField.uint8("hamlyn_datagram.mode", "Credentials", base.DEC, modes),
    own = ProtoField.uint32("hamlyn_datagram.own", "Association of the sender", base.HEX),
    protected = ProtoField.bytes("hamlyn_datagram.protected", "Protected, or not known to be in the clear"),
}
datagram.fields = d

local malformed = ProtoExpert.new("hamlyn.malformed", "Malformed", expert.group.MALFORMED, expert.severity.ERROR)
local refused = ProtoExpert.new("hamlyn.refusal", "Packets were refused", expert.group.RESPONSE_CODE, expert.severity.WARN)
local receiver_not_ready = ProtoExpert.new("hamlyn.receiver_not_ready", "The frame is to be sent again", expert.group.RESPONSE_CODE, expert.severity.NOTE)
hamlyn.experts = { malformed, refused, receiver_not_ready }

local function has(value, bit)
    return math.floor(value / bit) % 2 == 1
end

-- Marks what is wrong; the caller gives up.
local function wrong(tree, pinfo, what)
    tree:add_proto_expert_info(malformed, what)
    pinfo.cols.info:append(" [malformed: " .. what .. "]")
    return nil
end

-- The runs of acknowledgements; where they end.
local function runs(buffer, pinfo, tree, at, count)
    for _ = 1, count do
        if buffer:len() < at + RUN_BYTES then
            return wrong(tree, pinfo, "a run beyond the end")
        end
        local first, channels = buffer(at, 2):le_uint(), buffer(at + 2, 2):le_uint()
        local sequence = buffer(at + 4, 4):le_uint()
        local run = tree:add(f.run, buffer(at, RUN_BYTES))
        run:set_text(string.format("Acknowledged: frame %d of channels %d to %d", sequence, first, first + channels - 1))
        run:add_le(f.run_first, buffer(at, 2))
        run:add_le(f.run_count, buffer(at + 2, 2))
        run:add_le(f.run_sequence, buffer(at + 4, 4))
        at = at + RUN_BYTES
    end
    return at
end

-- The NACKs, each with its refused packets; where they end.
local function nacks(buffer, pinfo, tree, at, count)
    for _ = 1, count do
        if buffer:len() < at + NACK_BYTES then
            return wrong(tree, pinfo, "a NACK beyond the end")
        end
        local reason = buffer(at + 10, 1):uint()
        local nack = tree:add(f.nack, buffer(at, NACK_BYTES))
        nack:set_text(string.format("NACK: frame %d of channel %d: %s", buffer(at + 2, 4):le_uint(),
            buffer(at, 2):le_uint(), answers[reason] or "reason " .. reason))
        nack:add_le(f.nack_channel, buffer(at, 2))
        nack:add_le(f.nack_sequence, buffer(at + 2, 4))
        nack:add_le(f.nack_stamp, buffer(at + 6, 4))
        nack:add(f.nack_reason, buffer(at + 10, 1))
        at = at + NACK_BYTES
        if reason ~= 0 and reason ~= 3 then
            nack:add_proto_expert_info(receiver_not_ready)
        else
            if buffer:len() < at + 2 then
                return wrong(tree, pinfo, "a NACK beyond the end")
            end
            local refusals_here = buffer(at, 2):le_uint()
            at = at + 2
            if buffer:len() < at + refusals_here * REFUSED_BYTES then
                return wrong(tree, pinfo, "refused packets beyond the end")
            end
            for _ = 1, refusals_here do
                nack:add_le(f.refused_first, buffer(at, 2))
                nack:add_le(f.refused_count, buffer(at + 2, 2))
                nack:add(f.refused_reason, buffer(at + 4, 1))
                at = at + REFUSED_BYTES
            end
            nack:add_proto_expert_info(refused)
        end
    end
    return at
end

-- How many bytes a packet of that form has before its data, or before its kind.
local function front_bytes(form)
    local bytes = 1
    if not has(form, 0x20) then bytes = bytes + 14 end
    local offset = math.floor(form / 8) % 4
    if offset == 2 then bytes = bytes + 4 elseif offset == 3 then bytes = bytes + 8 end
    if math.floor(form / 2) % 4 == 3 then bytes = bytes + 8 end
    return bytes
end

-- One packet at `at`; where it ends. `before` is the packet before it, and becomes this one.
local function packet(buffer, pinfo, tree, at, before)
    local form = buffer(at, 1):uint()
    local is_general = has(form, 0x40)
    local front = front_bytes(form)
    local length, metadata_length, travelling = SHORT_BYTES, 0, SHORT_BYTES
    local total = front + SHORT_BYTES
    if is_general then
        if has(form, 1) then
            return wrong(tree, pinfo, "a general packet whose word is metadata")
        end
        if buffer:len() < at + front + TAIL_BYTES then
            return wrong(tree, pinfo, "a packet beyond the end")
        end
        metadata_length = buffer(at + front + 2, 1):uint()
        length = buffer(at + front + 3, 4):le_uint()
        travelling = has(buffer(at + front + 1, 1):uint(), PLACED) and 0 or length
        if metadata_length > METADATA_MAX then
            return wrong(tree, pinfo, "more metadata than there may be")
        end
        total = front + TAIL_BYTES + metadata_length + travelling
    end
    if buffer:len() < at + total then
        return wrong(tree, pinfo, "a packet beyond the end")
    end

    local said = at + 1
    local here = tree:add(f.packet, buffer(at, total))
    here:add(f.form, buffer(at, 1))
    here:add(f.general, buffer(at, 1))
    -- What is left out is shown where the packet says so: at its form.
    local place, index, key = buffer(at, 1), buffer(at, 1), buffer(at, 1)
    if not has(form, 0x20) then
        place, index, key = buffer(said, 4), buffer(said + 4, 2), buffer(said + 6, 8)
        before.slot, before.index, before.key = place:le_uint(), index:le_uint(), key:le_uint64()
        said = said + 14
    end
    here:add(f.slot, place, before.slot)
    here:add(f.index, index, before.index)
    here:add(f.fast, index, before.index == FAST_INDEX)
    here:add(f.key, key, before.key)
    local how, where = math.floor(form / 8) % 4, buffer(at, 1)
    if how == 1 then
        before.offset = before.ended
    elseif how == 2 then
        where = buffer(said, 4)
        before.offset = UInt64(where:le_uint())
        said = said + 4
    elseif how == 3 then
        where = buffer(said, 8)
        before.offset = where:le_uint64()
        said = said + 8
    end
    here:add(f.offset, where, before.offset)
    before.ended = before.offset + UInt64(length)
    how, where = math.floor(form / 2) % 4, buffer(at, 1)
    if how == 0 then
        before.word = UInt64(0)
    elseif how == 2 then
        before.word = before.word + UInt64(1)
    elseif how == 3 then
        where = buffer(said, 8)
        before.word = where:le_uint64()
        said = said + 8
    end
    if has(form, 1) then
        -- Its bytes are not there if the packet before had the same.
        if how == 3 then
            here:add(f.metadata, where)
        else
            here:add(f.word, where, before.word):append_text(" (8 bytes of metadata)")
        end
    else
        here:add(f.word, where, before.word)
    end
    if is_general then
        here:add(f.kind, buffer(said, 1))
        here:add(f.packet_flags, buffer(said + 1, 1))
        here:add(f.silent, buffer(said + 1, 1))
        here:add(f.placed, buffer(said + 1, 1))
        here:add_le(f.length, buffer(said + 3, 4))
        said = said + TAIL_BYTES
        if metadata_length > 0 then
            here:add(f.metadata, buffer(said, metadata_length))
            said = said + metadata_length
        end
    else
        here:add(f.length, buffer(at, 1), SHORT_BYTES)
    end
    if travelling > 0 then
        here:add(f.data, buffer(said, travelling))
    end
    here:set_text(string.format("Packet: slot 0x%08x, entry %s, offset %s, %d bytes", before.slot,
        before.index == FAST_INDEX and "none (fast mode)" or before.index, tostring(before.offset), length))
    return at + total
end

-- A frame from `at` to the end.
local function frame(buffer, pinfo, root, at)
    local tree = root:add(hamlyn, buffer(at), "Frame")
    if buffer:len() < at + HEADER_BYTES then
        return wrong(tree, pinfo, "shorter than a header")
    end
    local channel = buffer(at + 10, 2):le_uint()
    local flags, run_count, nack_count = buffer(at + 16, 1):uint(), buffer(at + 17, 1):uint(), buffer(at + 18, 1):uint()
    tree:add_le(f.stamp, buffer(at, 4))
    local echo = tree:add_le(f.echo, buffer(at + 4, 4))
    local hold = tree:add_le(f.hold, buffer(at + 8, 2))
    if not has(flags, 1) then
        echo:append_text(" (none)")
    elseif buffer(at + 8, 2):le_uint() == 0xffff then
        hold:append_text(" (or longer)")
    end
    local on = tree:add_le(f.channel, buffer(at + 10, 2))
    if channel == NO_CHANNEL then on:append_text(" (none)") end
    tree:add_le(f.sequence, buffer(at + 12, 4))
    local shown = tree:add(f.flags, buffer(at + 16, 1))
    shown:add(f.flag_echo, buffer(at + 16, 1))
    shown:add(f.flag_ask, buffer(at + 16, 1))
    shown:add(f.flag_closing, buffer(at + 16, 1))
    tree:add(f.runs, buffer(at + 17, 1))
    tree:add(f.nacks, buffer(at + 18, 1))
    tree:add(f.format, buffer(at + 19, 1))
    local info = channel == NO_CHANNEL and "no packets"
        or string.format("channel %d, frame %d", channel, buffer(at + 12, 4):le_uint())
    if run_count > 0 then info = info .. string.format(", %d runs acknowledged", run_count) end
    if nack_count > 0 then info = info .. string.format(", %d NACKs", nack_count) end
    if has(flags, 2) then info = info .. ", asks" end
    if has(flags, 4) then info = info .. ", closed" end
    pinfo.cols.info:append(info)
    if buffer(at + 19, 1):uint() ~= 1 then
        return wrong(tree, pinfo, "another format")
    elseif flags > 7 then
        return wrong(tree, pinfo, "an unknown flag")
    end

    at = runs(buffer, pinfo, tree, at + HEADER_BYTES, run_count)
    at = at and nacks(buffer, pinfo, tree, at, nack_count)
    if not at then return end

    local before = {
        slot = 0, index = 0, key = UInt64(0), offset = UInt64(0), ended = UInt64(0), word = UInt64(0),
    }
    local count = 0
    while at < buffer:len() and has(buffer(at, 1):uint(), 0x80) do
        if channel == NO_CHANNEL then
            return wrong(tree, pinfo, "packets without a channel")
        end
        at = packet(buffer, pinfo, tree, at, before)
        if not at then return end
        count = count + 1
    end
    if at < buffer:len() then
        if buffer(at, 1):uint() ~= 0 then
            return wrong(tree, pinfo, "neither a packet nor padding")
        end
        tree:add(f.padding, buffer(at))
    end
    if channel ~= NO_CHANNEL and count == 0 then
        return wrong(tree, pinfo, "a channel without packets")
    end
    tree:add(f.packets, buffer(buffer:len() - 1, 1), count):set_generated()
    if count > 0 then
        pinfo.cols.info:append(string.format(", %d packets", count))
    end
end

function hamlyn.dissector(buffer, pinfo, root)
    pinfo.cols.protocol = "Hamlyn"
    pinfo.cols.info = ""
    if buffer:len() < RECORD_BYTES or buffer(0, 1):uint() ~= 1 or buffer(1, 1):uint() ~= 0 then
        return wrong(root:add(hamlyn, buffer(), "Record"), pinfo, "no record of a trace of this version")
    end
    local tree = root:add(hamlyn, buffer(0, RECORD_BYTES), "Record of hamlyn trace")
    local flags = buffer(2, 1):uint()
    tree:add(f.sent, buffer(2, 1), has(flags, 1))
    tree:add(f.encrypted, buffer(2, 1), has(flags, 2))
    tree:add(f.path, buffer(3, 1))
    tree:add_le(f.process, buffer(4, 4))
    tree:add_le(f.own_association, buffer(8, 4))
    tree:add_le(f.peer_association, buffer(12, 4))
    tree:add_le(f.peer_interface, buffer(16, 8))
    tree:add_le(f.peer_host, buffer(24, 4))
    tree:add_le(f.peer_user, buffer(28, 4))
    pinfo.cols.info = has(flags, 1) and "sent: " or "came: "
    if buffer:len() == RECORD_BYTES then
        return wrong(tree, pinfo, "no frame")
    end
    frame(buffer, pinfo, root, RECORD_BYTES)
end

-- Datagrams as they are on the wire: only the packet header is in the clear, and the heads of handshakes.
function datagram.dissector(buffer, pinfo, root)
    if buffer:len() < PACKET_HEADER_BYTES then return 0 end
    local kind = buffer(0, 1):uint()
    if math.floor(kind / 16) ~= 1 or kind % 16 > 6 or buffer(2, 2):le_uint() ~= buffer:len() then return 0 end
    kind = kind % 16
    pinfo.cols.protocol = "Hamlyn"
    pinfo.cols.info = string.format("%s, %d bytes for association 0x%08x", datagram_kinds[kind], buffer:len(),
        buffer(4, 4):le_uint())
    local tree = root:add(datagram, buffer())
    tree:add(d.version, buffer(0, 1))
    tree:add(d.kind, buffer(0, 1))
    tree:add(d.phase, buffer(1, 1))
    tree:add(d.path, buffer(1, 1))
    tree:add_le(d.length, buffer(2, 2))
    tree:add_le(d.association, buffer(4, 4))
    tree:add_le(d.number, buffer(8, 8))
    if (kind == 1 or kind == 2) and buffer:len() >= 24 then
        tree:add(d.mode, buffer(16, 1))
        tree:add_le(d.own, buffer(20, 4))
    elseif buffer:len() > PACKET_HEADER_BYTES then
        tree:add(d.protected, buffer(PACKET_HEADER_BYTES))
    end
    return buffer:len()
end

-- Frames go between ports that the system chose: found by what they look like.
datagram:register_heuristic("udp", function(buffer, pinfo, root)
    if buffer:len() < PACKET_HEADER_BYTES + 4 then return false end
    return datagram.dissector(buffer, pinfo, root) > 0
end)
DissectorTable.get("udp.port"):add(DOOR_PORT, datagram)
