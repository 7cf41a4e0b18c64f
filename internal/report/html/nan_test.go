package html

import "math"

// nan stands for a value, bound of the interval or null (value by chance) that a score lacks.
var nan = math.NaN()
