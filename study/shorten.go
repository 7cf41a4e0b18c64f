package study

import (
	"slices"
	"strings"
)

// some lists the first names of many.
func some(names []string, most int) string {
	if len(names) > most {
		names = append(slices.Clone(names[:most]), "...")
	}
	return strings.Join(names, ", ")
}
