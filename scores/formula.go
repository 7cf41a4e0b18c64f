package scores

import (
	"slices"
	"strings"
)

// WithoutFormulas prefixes texts that a spreadsheet would parse as formulas with an apostrophe:
// names may come from untrusted files.
func WithoutFormulas(rows []Row) []Row {
	rows = slices.Clone(rows)
	for i := range rows {
		r := &rows[i]
		for _, text := range []*string{&r.Study, &r.Model, &r.Layer, &r.OtherModel, &r.OtherLayer, &r.Data, &r.Transform, &r.Parameter,
			&r.Measure, &r.Variant, &r.Factor, &r.Statistic, &r.Warning} {
			if *text != "" && strings.ContainsRune("=+-@\t\r", rune((*text)[0])) && !isNumber(*text) {
				*text = "'" + *text
			}
		}
	}
	return rows
}

func isNumber(text string) bool {
	p := &parser{fields: [][]byte{[]byte(text)}}
	p.float()
	return p.err == nil
}
