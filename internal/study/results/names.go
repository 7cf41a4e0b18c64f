package results

import (
	"slices"
	"strings"
)

// An ellipsis stands for the names beyond most.
func firstNames(names []string, most int) string {
	if len(names) > most {
		names = append(slices.Clone(names[:most]), "...")
	}
	return strings.Join(names, ", ")
}
