// The same lines for each port. P4 has no loops that a pipeline could run, so they are written out. A place is a port's
// bit in the map of next hops.

#ifndef REPEAT_P4
#define REPEAT_P4

#ifndef PORTS
#define PORTS 16
#endif

#define EIGHT(LINES, a, b, c, d, e, f, g, h) LINES(a) LINES(b) LINES(c) LINES(d) LINES(e) LINES(f) LINES(g) LINES(h)
#define FIRST_EIGHT(LINES) EIGHT(LINES, 0, 1, 2, 3, 4, 5, 6, 7)
#define SECOND_EIGHT(LINES) EIGHT(LINES, 8, 9, 10, 11, 12, 13, 14, 15)
#define THIRD_EIGHT(LINES) EIGHT(LINES, 16, 17, 18, 19, 20, 21, 22, 23)
#define FOURTH_EIGHT(LINES) EIGHT(LINES, 24, 25, 26, 27, 28, 29, 30, 31)

#if PORTS == 8
#define EACH_PORT(LINES) FIRST_EIGHT(LINES)
#elif PORTS == 16
#define EACH_PORT(LINES) FIRST_EIGHT(LINES) SECOND_EIGHT(LINES)
#elif PORTS == 32
#define EACH_PORT(LINES) FIRST_EIGHT(LINES) SECOND_EIGHT(LINES) THIRD_EIGHT(LINES) FOURTH_EIGHT(LINES)
#else
#error "PORTS is 8, 16 or 32"
#endif

#endif
