package scores

import (
	"encoding/csv"
	"io"
	"math"
	"strconv"
)

// WriteCSV writes rows as CSV with a header line. Numbers have the fewest digits that read back
// equal. NaN, NoDepth and MeanOverTrials are empty.
func WriteCSV(w io.Writer, rows []Row) error {
	c := csv.NewWriter(w)
	c.Write(Columns)
	for _, r := range rows {
		c.Write([]string{
			r.Study, r.Model, r.Layer, formatInt(r.Depth), r.OtherModel, r.OtherLayer, r.Data, r.Transform, r.Parameter,
			formatInt(r.Trial), r.Measure, r.Variant, r.Factor, r.Statistic,
			formatFloat(r.Value), formatFloat(r.Low), formatFloat(r.High), formatFloat(r.Null), strconv.Itoa(r.N), r.Warning,
			formatP(r.P), formatP(r.PAdjusted),
		})
	}
	c.Flush()
	return c.Error()
}

// formatInt returns "" for a negative number, because NoDepth and MeanOverTrials are negative.
func formatInt(v int) string {
	if v < 0 {
		return ""
	}
	return strconv.Itoa(v)
}

// formatP returns "" for 0, which is no p-value.
func formatP(p float64) string {
	if p == 0 {
		return ""
	}
	return strconv.FormatFloat(p, 'g', -1, 64)
}

// formatFloat writes infinities in the form that pandas and R read.
func formatFloat(v float64) string {
	switch {
	case math.IsNaN(v):
		return ""
	case math.IsInf(v, 1):
		return "inf"
	case math.IsInf(v, -1):
		return "-inf"
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}
