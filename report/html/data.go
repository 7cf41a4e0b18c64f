package html

import (
	"cmp"
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

// pageData is the data of a page: the table of scores, tables of what charts draw besides, and the
// descriptions of the charts.
type pageData struct {
	tableData
	Shown    []int                        `json:"shown"`  // the report.Level of each row
	Tables   map[string]tableData         `json:"tables"` // see report.Chart.Table
	Fields   map[string]report.FieldLabel `json:"fields"`
	Looks    []report.Look                `json:"looks"` // of series, by index
	Notices  map[string]string            `json:"notices"`
	Measures []measureData                `json:"measures"`
	Models   []modelData                  `json:"models"`

	Statements []report.Statement `json:"statements"`
	Relations  []relationData     `json:"relations"`
	Images     []packedImage      `json:"pictures"`
}

// A tableData is a table stored by column, with texts as indices into their distinct values: 100,000
// rows take a few megabytes and are decoded quickly.
type tableData struct {
	Rows    int                   `json:"rows"`
	Texts   map[string]textColumn `json:"texts"`
	Numbers map[string]numbers    `json:"numbers"` // a single number if all rows have the same
	Columns []columnData          `json:"columns,omitempty"`
	Order   []string              `json:"order,omitempty"` // of the names of parts
}

// A columnData is a column of a table as a reader sees it.
type columnData struct {
	Name  string `json:"name"`
	Title string `json:"title"` // "" means the title of the field
}

func newTable[T any](rows []T, columns []columnData) tableData {
	for i, c := range columns {
		columns[i].Title = cmp.Or(c.Title, report.Field(c.Name).Title())
	}
	return tableData{Rows: len(rows), Columns: columns}
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
	Layered bool                          `json:"layered"`
	Toward  map[string]string             `json:"toward"`  // by statistic: meaning of a higher or a lower value
	Colours map[string]report.ColourScale `json:"colours"` // by statistic
	Charts  []report.Chart                `json:"charts"`  // the first is shown first
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
func newPageData(r Run) pageData {
	rows, rec := r.Rows, r.Record
	measures := report.Describe(rows, rec.Measures)
	p := pageData{tableData: scoreTable(rows, measures, rec.Models), Shown: make([]int, len(rows)), Fields: fieldLabels(), Looks: report.Looks(), Notices: notices,
		Measures: []measureData{}, Models: packModels(rec.Models), Statements: encodeStatements(report.Statements(rows, rec.Measures)),
		Relations: packRelations(rows, rec.Measures), Images: packImages(r.Images), Tables: map[string]tableData{
			"bins": binTable(r.Distributions, rec.Models), "ranks": rankTable(r.Distributions, rec.Models), "steps": stepTable(r.Curves, rec.Models)}}
	values := make(map[[2]string][]float64)
	for i, level := range report.Levels(rows) {
		p.Shown[i] = int(level)
		if level >= report.OverTrial {
			of := [2]string{rows[i].Measure, rows[i].Statistic}
			values[of] = append(values[of], rows[i].Value)
		}
	}
	for _, m := range measures {
		d := measureData{m, report.Layered(rows, m.Name), map[string]string{}, map[string]report.ColourScale{}, report.ChartsOf(m, rows, r.Attachments)}
		for _, s := range m.Statistics {
			d.Toward[s.Name] = report.Toward(m, s)
			d.Colours[s.Name] = report.NewColourScale(values[[2]string{m.Name, s.Name}], s.Range)
		}
		p.Measures = append(p.Measures, d)
	}
	return p
}

// notices are the texts of a page where there is nothing to see.
var notices = map[string]string{
	"empty":  "There is no number to show.",
	"hidden": "The filters hide all scores.",
	"none":   "There are no scores for this choice.",
	"images": "The filters hide all images.",
}

// fieldLabels returns the labels of all fields.
func fieldLabels() map[string]report.FieldLabel {
	out := make(map[string]report.FieldLabel)
	for f, label := range report.FieldLabels {
		out[string(f)] = label
	}
	return out
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

// scoreTable returns the table of scores.
func scoreTable(all []scores.Row, measures report.Measures, models []scores.ModelRecord) tableData {
	rows := make([]*scores.Row, len(all))
	for i := range all {
		rows[i] = &all[i]
	}
	t := newTable(rows, nil)
	field := func(f report.Field) textColumn {
		return packText(rows, func(r *scores.Row) string { return f.Of(measures, r) })
	}
	t.Texts = map[string]textColumn{
		"measure":   packText(rows, func(r *scores.Row) string { return r.Measure }),
		"statistic": packText(rows, func(r *scores.Row) string { return r.Statistic }),
		"transform": packText(rows, func(r *scores.Row) string { return r.Transform }),
		"warning":   packText(rows, func(r *scores.Row) string { return r.Warning }),
	}
	for _, f := range []report.Field{"model", "reference", "compared", "layer", "other", "data", "parameter", "variant", "factor"} {
		t.Texts[string(f)] = field(f)
	}
	depth, relative := depths(models), report.RelativeDepth(all)
	t.Numbers = map[string]numbers{
		"depth":      packNumber(rows, func(r *scores.Row) float64 { return float64(r.Depth) }),
		"relative":   packNumber(rows, relative),
		"otherDepth": packNumber(rows, func(r *scores.Row) float64 { return float64(depth(r.OtherModel, r.OtherLayer)) }),
		"trial":      packNumber(rows, func(r *scores.Row) float64 { return float64(r.Trial) }),
		"value":      packNumber(rows, func(r *scores.Row) float64 { return r.Value }),
		"low":        packNumber(rows, func(r *scores.Row) float64 { return r.Low }),
		"high":       packNumber(rows, func(r *scores.Row) float64 { return r.High }),
		"null":       packNumber(rows, func(r *scores.Row) float64 { return r.Null }),
		"n":          packNumber(rows, func(r *scores.Row) float64 { return float64(r.N) }),
	}
	probed := make(map[string]bool)
	for _, m := range measures {
		probed[m.Name] = m.Probes
	}
	type part struct {
		*scores.Row
		name string
	}
	parts := make([]part, len(rows))
	names, order := report.Parts(all)
	for i, name := range names {
		if probed[rows[i].Measure] {
			parts[i] = part{rows[i], name}
		}
	}
	t.Texts["part"] = packText(parts, func(p part) string { return p.name })
	t.Texts["pair"] = packText(parts, func(p part) string {
		if p.Row == nil {
			return ""
		}
		return report.Field("pair").Of(measures, p.Row)
	})
	t.Order = order
	return t
}

func packText[T any](rows []T, field func(T) string) textColumn {
	c := textColumn{Values: []string{}, Codes: make([]int, len(rows))}
	raw, printable := make(map[string]int), make(map[string]int)
	for i := range rows {
		name := field(rows[i])
		code, seen := raw[name]
		if !seen {
			text := report.Printable(name)
			if code, seen = printable[text]; !seen {
				code = len(c.Values)
				c.Values = append(c.Values, text)
			}
			raw[name], printable[text] = code, code
		}
		c.Codes[i] = code
	}
	if len(c.Values) < 2 {
		c.Codes = []int{}
	}
	return c
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

func packNumber[T any](rows []T, field func(T) float64) numbers {
	n := make(numbers, len(rows))
	for i := range rows {
		n[i] = field(rows[i])
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
