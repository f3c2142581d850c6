"""The protocol as pure functions: arguments, datestamps, identifiers, resumption tokens, response frames.

Nothing here touches the network or the store. OAI spelling (`metadataPrefix`) stays inside this room.
"""
