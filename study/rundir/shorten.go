package rundir

import (
	"slices"
	"strings"
)

// firstNames lists the first names of many.
func firstNames(names []string, most int) string {
	if len(names) > most {
		names = append(slices.Clone(names[:most]), "...")
	}
	return strings.Join(names, ", ")
}
