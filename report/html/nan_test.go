package html

import "math"

var nan = math.NaN()
