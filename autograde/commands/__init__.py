"""The commands of `autograde`, in the order of its help.

for_students, for_a_class, for_authors  the commands, which leave the work to other rooms
chosen    the course, lessons or copy that a command is about
terminal  a class being graded, on the terminal
"""
