"""Drawing tidy data: panels of lines, bars, distributions, boxes, curves over time and tables, in one look.

`view` says what a plot is given, `figure` puts panels together. Papers (`weft.papers.drawing`) make views from their
declarations; of comparisons and sweeps, `asked` reads which figure is wanted and `runs` makes it.
"""
