"""The schemes of switches as P4 programs: recordings of Weft, replayed through a program on a software switch."""
