"""The values that a rubric can record: to plain data and back, compared, and shown.

dispatch      which module knows a value; to_plain, copied, apart, side_by_side
python        numbers, text, containers, named tuples, dataclasses; differences compares them,
              layout shows them
exact         dates, spans of time, Decimals and Fractions
arrays        NumPy's arrays and scalars
tensors       torch's tensors; modules, given to answers
frames        pandas' DataFrames, Series and Indexes; frame_tables: their columns, which dtypes
              are alike, and as tables
numbers       arrays of numbers: distance, first difference, tables; for all of the above
loaded_torch  torch, where something has imported it
packing       plain data to bytes and back, without code being run
base, text    what all of them share
"""
