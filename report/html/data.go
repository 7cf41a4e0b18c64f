package html

import (
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/report"
	"github.com/noether-ml/noether/scores"
)

// pageData is the data of a page. Rows are stored by column, and texts as indices into their distinct
// values: 100,000 rows take a few megabytes and are decoded quickly.
type pageData struct {
	Study    string                `json:"study"`
	Rows     int                   `json:"rows"`
	Texts    map[string]textColumn `json:"texts"`
	Numbers  map[string]numbers    `json:"numbers"` // a single number if all rows have the same
	Shown    []int                 `json:"shown"`   // the report.Level of each row
	Measures []measureData         `json:"measures"`
	Models   []modelData           `json:"models"`

	Statements    []report.Statement              `json:"statements"`
	Readings      map[string][]report.ReadingPart `json:"readings"`
	Relations     []relationData                  `json:"relations"`
	Distributions []distributionData              `json:"distributions"`
	Curves        []packedCurve                   `json:"curves"`
	Images        []packedImage                   `json:"pictures"`
}

// A modelData describes a model, for grouping.
type modelData struct {
	Name string            `json:"name"`
	Tags map[string]string `json:"tags"`
}

// A textColumn is a column with few distinct texts. Codes is empty if all rows have the first one.
type textColumn struct {
	Values []string `json:"values"`
	Codes  []int    `json:"codes"`
}

// A measureData describes a measure for its charts.
type measureData struct {
	measure.Descriptor
	Layered bool              `json:"layered"`
	Toward  map[string]string `json:"toward"` // by statistic: meaning of a higher or a lower value
}

// numbers are encoded with six significant digits, integers exactly, and as null if not finite.
type numbers []float64

func (n numbers) MarshalJSON() ([]byte, error) {
	b := append(make([]byte, 0, 8*len(n)+2), '[')
	for i, v := range n {
		if i > 0 {
			b = append(b, ',')
		}
		if math.IsNaN(v) || math.IsInf(v, 0) {
			b = append(b, "null"...)
			continue
		}
		b = strconv.AppendFloat(b, v, 'g', digits(v), 64)
	}
	return append(b, ']'), nil
}

// newPageData returns the data of a page.
func newPageData(rows []scores.Row, rec scores.Record) pageData {
	measures := report.Describe(rows, rec.Measures)
	p := pageData{Study: report.Printable(rec.Study), Rows: len(rows), Texts: packTexts(rows, measures), Numbers: packNumbers(rows, rec.Models),
		Shown: make([]int, len(rows)), Measures: []measureData{}, Models: packModels(rec.Models),
		Statements: encodeStatements(report.Statements(rows, rec.Measures)), Readings: report.Readings}
	for i, level := range report.Levels(rows) {
		p.Shown[i] = int(level)
	}
	for _, m := range measures {
		p.Measures = append(p.Measures, measureData{m, report.Layered(rows, m.Name), toward(m)})
	}
	return p
}

// encodeStatements encodes the row indices of statements as the first index and the differences
// between successive ones, which compress well.
func encodeStatements(all []report.Statement) []report.Statement {
	for i, s := range all {
		all[i].Text = report.Printable(s.Text)
		for k := len(s.Rows) - 1; k > 0; k-- {
			s.Rows[k] -= s.Rows[k-1]
		}
	}
	return all
}

func toward(m measure.Descriptor) map[string]string {
	out := make(map[string]string)
	for _, s := range m.Statistics {
		out[s.Name] = report.Toward(m, s)
	}
	return out
}

func packModels(models []scores.ModelRecord) []modelData {
	out := make([]modelData, len(models))
	for i, m := range models {
		out[i] = modelData{report.Printable(m.Name), map[string]string{}}
		for key, value := range m.Tags {
			out[i].Tags[report.Printable(key)] = report.Printable(value)
		}
	}
	return out
}

// compressJSON returns a value as compressed JSON in base64, which is safe inside a script element.
func compressJSON(v any) (string, error) {
	var b strings.Builder
	text := base64.NewEncoder(base64.StdEncoding, &b)
	zip, err := gzip.NewWriterLevel(text, gzip.BestCompression)
	if err != nil {
		return "", err
	}
	if err := errors.Join(json.NewEncoder(zip).Encode(v), zip.Close(), text.Close()); err != nil {
		return "", err
	}
	return b.String(), nil
}

func packTexts(rows []scores.Row, measures report.Measures) map[string]textColumn {
	return map[string]textColumn{
		"from":      packText(rows, func(r *scores.Row) string { return r.Model }),
		"to":        packText(rows, func(r *scores.Row) string { return r.OtherModel }),
		"model":     packText(rows, measures.ModelLabel),
		"layer":     packText(rows, func(r *scores.Row) string { return r.Layer }),
		"other":     packText(rows, func(r *scores.Row) string { return r.OtherLayer }),
		"data":      packText(rows, func(r *scores.Row) string { return r.Data }),
		"transform": packText(rows, func(r *scores.Row) string { return r.Transform }),
		"parameter": packText(rows, func(r *scores.Row) string { return r.Parameter }),
		"measure":   packText(rows, func(r *scores.Row) string { return r.Measure }),
		"variant":   packText(rows, func(r *scores.Row) string { return r.Variant }),
		"factor":    packText(rows, func(r *scores.Row) string { return r.Factor }),
		"statistic": packText(rows, func(r *scores.Row) string { return r.Statistic }),
		"warning":   packText(rows, func(r *scores.Row) string { return r.Warning }),
	}
}

func packText(rows []scores.Row, field func(*scores.Row) string) textColumn {
	c := textColumn{Values: []string{}, Codes: make([]int, len(rows))}
	place := make(map[string]int)
	for i := range rows {
		text := report.Printable(field(&rows[i]))
		code, seen := place[text]
		if !seen {
			code = len(c.Values)
			place[text] = code
			c.Values = append(c.Values, text)
		}
		c.Codes[i] = code
	}
	if len(c.Values) < 2 {
		c.Codes = []int{}
	}
	return c
}

func packNumbers(rows []scores.Row, models []scores.ModelRecord) map[string]numbers {
	depth := depths(models)
	return map[string]numbers{
		"depth":      packNumber(rows, func(r *scores.Row) float64 { return float64(r.Depth) }),
		"otherDepth": packNumber(rows, func(r *scores.Row) float64 { return float64(depth(r.OtherModel, r.OtherLayer)) }),
		"trial":      packNumber(rows, func(r *scores.Row) float64 { return float64(r.Trial) }),
		"value":      packNumber(rows, func(r *scores.Row) float64 { return r.Value }),
		"low":        packNumber(rows, func(r *scores.Row) float64 { return r.Low }),
		"high":       packNumber(rows, func(r *scores.Row) float64 { return r.High }),
		"null":       packNumber(rows, func(r *scores.Row) float64 { return r.Null }),
		"n":          packNumber(rows, func(r *scores.Row) float64 { return float64(r.N) }),
	}
}

// depths returns a function that returns the depth of a model's layer, or scores.NoDepth if there
// is no such layer.
func depths(models []scores.ModelRecord) func(model, layer string) int {
	known := make(map[[2]string]int)
	for _, m := range models {
		for _, l := range m.Layers {
			known[[2]string{m.Name, l.Name}] = l.Depth
		}
	}
	return func(model, layer string) int {
		if depth, ok := known[[2]string{model, layer}]; ok {
			return depth
		}
		return scores.NoDepth
	}
}

func packNumber(rows []scores.Row, field func(*scores.Row) float64) numbers {
	n := make(numbers, len(rows))
	for i := range rows {
		n[i] = field(&rows[i])
	}
	if len(n) > 1 && !slices.ContainsFunc(n, func(v float64) bool { return v != n[0] && !(math.IsNaN(v) && math.IsNaN(n[0])) }) {
		return n[:1]
	}
	return n
}

// digits returns the precision with which a number is encoded: exact for integers, otherwise six
// digits.
func digits(v float64) int {
	if v == math.Trunc(v) {
		return -1
	}
	return 6
}
