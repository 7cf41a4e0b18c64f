package rundir

import (
	"slices"
	"strings"
)

// firstNames joins the first names of a list, with an ellipsis if there are more than most.
func firstNames(names []string, most int) string {
	if len(names) > most {
		names = append(slices.Clone(names[:most]), "...")
	}
	return strings.Join(names, ", ")
}
