"""What a number of the model can be: functions of letters and of integers, and their bounds."""
