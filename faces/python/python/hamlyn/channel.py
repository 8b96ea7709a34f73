class Channel: pass
