package grad

import (
	"maps"
	"slices"
)

// Operators are those that have a rule.
func Operators() []string { return slices.Sorted(maps.Keys(rules)) }
