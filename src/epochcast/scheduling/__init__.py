"""A queue of jobs on machines that can be rented: policies, simulator, lower bound, timetable. It sees only plain forecasts."""
