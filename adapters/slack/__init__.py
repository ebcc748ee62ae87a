"""Slack, whole: over Socket Mode or by signed requests, one adapter for each workspace.

Names nothing itself, so that the manifest can be printed without loading Slack's libraries.
"""
