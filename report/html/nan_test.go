package html

import "math"

// nan stands for a value, bound or null that a score lacks.
var nan = math.NaN()
