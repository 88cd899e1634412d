"""What a class has handed in: files, folders and zips, and whose each notebook is.

Read `hand_ins` first. `file_tree` lists what lies in folders and zips, `portal_names` knows how learning platforms call
files, and `class_list` finds learners in a teacher's list.
"""
