"""The papers: their experiments and figures as data, what makes them again, and the verdicts on their claims."""
