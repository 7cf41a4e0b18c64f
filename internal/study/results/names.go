package results

import (
	"slices"
	"strings"
)

// firstNames joins the first names of a list, at most the given number. An ellipsis stands for the
// others.
func firstNames(names []string, most int) string {
	if len(names) > most {
		names = append(slices.Clone(names[:most]), "...")
	}
	return strings.Join(names, ", ")
}
