"""The durable heart of one conversation: lanes, inputs, runs, calls, waits, transcript, outbox.

Rows and the units of work that change them stand together. A unit is a plain function of a
connection.
"""
