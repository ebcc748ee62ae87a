"""Slack: direct messages, mentions, channels and threads over Socket Mode.

Names nothing itself, so that the manifest can be printed without loading Slack's libraries.
"""
