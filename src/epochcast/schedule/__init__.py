"""A queue of jobs on machines that can be rented.

Policies, simulator, lower bound, timetable. It sees only plain forecasts.
"""
