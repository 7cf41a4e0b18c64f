package html

import (
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/noether-ml/noether/internal/report"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

// pageData is the data of a page: the table of scores, tables of what else the charts draw, and the
// descriptions of the charts. The code in the browser reads it by these keys (web/src/data.ts).
type pageData struct {
	tableData                                    // of scores: row i is Run.Rows[i]
	Shown     []int                              `json:"shown"`  // the report.Level of each row: a detail, or a summary over trials or values
	Tables    map[string]tableData               `json:"tables"` // see report.Chart.Table
	Fields    map[report.Field]report.FieldLabel `json:"fields"`
	Looks     []report.Look                      `json:"looks"`   // colour, marker and dashes of series, by index
	Notices   map[string]string                  `json:"notices"` // see notices
	Measures  []measureData                      `json:"measures"`
	Models    []modelData                        `json:"models"`

	Statements []report.Statement `json:"statements"` // sentences about scores
	Relations  []relationData     `json:"relations"`  // of scores to accuracy
	Images     []report.Image     `json:"pictures"`

	Matrices   []report.Matrix     `json:"matrices"`   // of a statistic, models x transformations
	Curves     []report.CurvePanel `json:"curves"`     // statistics with curves over depth
	Samples    []report.SheetValue `json:"samples"`    // values for the samples on contact sheets
	Transforms map[string]string   `json:"transforms"` // titles of their parameters, by name

	Sheets []report.SampleSheet          `json:"sheets"` // the samples that a transformation changes most and least
	Scales map[string]report.ColourScale `json:"scales"` // of classes

	Networks []networkData     `json:"networks"` // graphs of the models
	Maps     []report.MapSheet `json:"maps"`     // drawings of feature maps
}

// A tableData is a table stored by column, with texts as indices into their distinct values:
// 100,000 rows take a few megabytes and are decoded quickly.
type tableData struct {
	Rows    int                   `json:"rows"`
	Texts   map[string]textColumn `json:"texts"`
	Numbers map[string]numbers    `json:"numbers"` // a single number if all rows have the same
	Columns []columnData          `json:"columns,omitempty"`
	// Order lists the names of the parts of the ranges of transformations, from the lowest part to
	// the highest (see report.Parts).
	Order []string `json:"order,omitempty"`
}

// A columnData is the heading of a column that readers see.
type columnData struct {
	Name  string `json:"name"`
	Title string `json:"title"`
}

// A column is a column of texts or of numbers, whichever function is set. If title is not empty,
// readers see the column.
type column[T any] struct {
	name, title string
	text        func(T) string
	number      func(T) float64
}

func packTable[T any](rows []T, columns []column[T]) tableData {
	t := tableData{Rows: len(rows), Texts: map[string]textColumn{}, Numbers: map[string]numbers{}}
	for _, c := range columns {
		if c.title != "" {
			t.Columns = append(t.Columns, columnData{c.name, c.title})
		}
		if c.text != nil {
			t.Texts[c.name] = packText(rows, c.text)
		} else {
			t.Numbers[c.name] = packNumber(rows, c.number)
		}
	}
	return t
}

// A modelData has the tags of a model, by which readers can group models.
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
	Key     string                                   `json:"key"`     // of the section of the page
	Layered bool                                     `json:"layered"` // it scores layers that can be compared
	Toward  map[string]string                        `json:"toward"`  // by statistic: what a high or low value means
	Colours map[string]map[string]report.ColourScale `json:"colours"` // by table and statistic
	Charts  []report.Chart                           `json:"charts"`  // the first is shown first
}

// numbers are encoded with six significant digits, integers exactly, and as null if not finite.
type numbers []float64

// MarshalJSON implements json.Marshaler.
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

// newPageData returns the data of a page for a run; attached returns its attachments.
func newPageData(r Run, attached func() report.Attachments) pageData {
	rows, rec := r.Rows, r.Record
	measures, sections := report.Describe(rows, rec.Measures), report.Sections(rows, rec.Measures)
	var table tableData
	// The table is made in a goroutine; wait returns when it is complete.
	wait := start(func() { table = scoreTable(rows, measures, sections, rec.Models) })
	p := pageData{Shown: make([]int, len(rows)), Fields: report.FieldLabels(), Looks: report.Looks(), Notices: notices,
		Measures: []measureData{}, Models: packModels(rec.Models), Statements: encodeStatements(report.Statements(rows, rec.Measures, r.Replicates)),
		Relations: packRelations(rows, &rec)}
	p.Matrices, p.Curves, p.Transforms = report.Matrices(rows, rec.Measures), report.CurvePanels(rows, rec.Measures), map[string]string{}
	p.Networks = packNetworks(rows, rec.Models)
	for _, t := range rec.Transforms {
		p.Transforms[t.Name] = t.Parameter
	}
	values := make(map[[2]string][]float64)
	for i, level := range report.Levels(rows) {
		p.Shown[i] = int(level)
		if level >= report.OverTrial {
			of := [2]string{rows[i].Measure, rows[i].Statistic}
			values[of] = append(values[of], rows[i].Value)
		}
	}
	r.Attachments = attached()
	p.Images, p.Tables = withAlternatives(r.Images), map[string]tableData{
		"bins": binTable(r.Distributions, rec.Models), "ranks": rankTable(r.Distributions, rec.Models), "steps": stepTable(r.Curves, rec.Models)}
	p.Samples, p.Maps, p.Sheets = r.SheetValues, inStudyOrder(r.MapSheets, &rec), r.SampleSheets
	p.Scales = classScales(r.SampleSheets)
	units := make(map[[2]string][]float64) // ranges of the values of units: channels at positions of a layer
	for _, d := range r.Distributions {
		of := [2]string{d.Measure, d.Statistic}
		units[of] = append(units[of], d.Low, d.High)
	}
	for _, section := range sections {
		m, a := section.Descriptor, r.Attachments
		if section.Key != m.Name {
			a = report.Attachments{} // the measure's main section, whose key is its name, shows them
		}
		of := section.Of(rows)
		colours, ofUnits := map[string]report.ColourScale{}, map[string]report.ColourScale{}
		d := measureData{m, section.Key, report.Layered(of, m.Name), map[string]string{}, map[string]map[string]report.ColourScale{"scores": colours, "ranks": ofUnits},
			report.ChartsOf(m, of, a)}
		for _, s := range m.Statistics {
			of := [2]string{m.Name, s.Name}
			d.Toward[s.Name] = report.DirectionNote(m, s)
			colours[s.Name], ofUnits[s.Name] = report.NewColourScale(values[of], s.Range), report.NewColourScale(units[of], s.Range)
		}
		p.Measures = append(p.Measures, d)
	}
	wait()
	p.tableData = table
	return p
}

// notices are the texts of a page where there is nothing to see.
var notices = map[string]string{
	"empty":  "There is no number to show.",
	"hidden": "The filters hide all scores.",
	"none":   "There are no scores for this choice.",
	"images": "The filters hide all images.",
}

func inStudyOrder(sheets []report.MapSheet, rec *scores.Record) []report.MapSheet {
	out := slices.Clone(sheets)
	place := func(s report.MapSheet) []int {
		return []int{
			slices.IndexFunc(rec.Transforms, func(t scores.TransformRecord) bool { return t.Name == s.Transform }),
			slices.IndexFunc(rec.Models, func(m scores.ModelRecord) bool { return m.Name == s.Model }),
		}
	}
	slices.SortStableFunc(out, func(a, b report.MapSheet) int { return slices.Compare(place(a), place(b)) })
	return out
}

// classScales returns the colour scales of the heat map of classes: drop for losses of accuracy and
// share for effective invariance.
func classScales(sheets []report.SampleSheet) map[string]report.ColourScale {
	var drops []float64
	for _, s := range sheets {
		drops = append(drops, s.Drops()...)
	}
	return map[string]report.ColourScale{
		// With values of both signs the colours diverge from 0, even if no class gains accuracy.
		"drop":  report.NewColourScale(append(drops, -0.01, 0.01), measure.Range{Low: -1, High: 1}),
		"share": report.NewColourScale([]float64{0, 1}, measure.ZeroToOne),
	}
}

// encodeStatements encodes row indices as their differences, which compress well.
func encodeStatements(all []report.Statement) []report.Statement {
	for _, s := range all {
		for k := len(s.Rows) - 1; k > 0; k-- {
			s.Rows[k] -= s.Rows[k-1]
		}
	}
	return all
}

// packModels returns the names and tags of models.
func packModels(models []scores.ModelRecord) []modelData {
	out := make([]modelData, len(models))
	for i, m := range models {
		out[i] = modelData{m.Name, maps.Clone(m.Tags)}
		if m.Tags == nil {
			out[i].Tags = map[string]string{}
		}
	}
	return out
}

// compressJSON returns a value as compressed JSON in base64, which is safe inside a script element.
// All its texts are printable.
func compressJSON(v any) (string, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	text := base64.NewEncoder(base64.StdEncoding, &b)
	zip, err := gzip.NewWriterLevel(text, gzip.BestCompression)
	if err != nil {
		return "", err
	}
	_, err = io.WriteString(zip, printableJSON(raw))
	err = errors.Join(err, zip.Close(), text.Close())
	return b.String(), err
}

// controls matches the escapes of JSON, and characters beyond ASCII. Those of control characters
// and the like are replaced.
var controls = regexp.MustCompile(`\\(?:u00[01][0-9a-f]|.)|[^ -~]`)

// printableJSON applies report.Printable to all texts of a JSON value.
func printableJSON(raw []byte) string {
	return string(controls.ReplaceAllFunc(raw, func(match []byte) []byte {
		var text string
		if len(match) == 2 && strings.ContainsRune(`"\/u`, rune(match[1])) || json.Unmarshal([]byte(`"`+string(match)+`"`), &text) != nil {
			return match
		}
		if shown := report.Printable(text); shown != text {
			return []byte(strings.ReplaceAll(shown, `\`, `\\`))
		}
		return match
	}))
}

// scoreTable returns the table of scores. For the columns see report.Field, report.Places,
// report.RelativeDepth and report.Confidence.
func scoreTable(rows []scores.Row, measures report.Measures, sections []report.Section, models []scores.ModelRecord) tableData {
	type row struct {
		*scores.Row
		// See report.Field; "" unless the measure's variants are kinds of probes.
		part, pair string
	}
	probed := make(map[string]bool)
	for _, m := range measures {
		probed[m.Name] = m.Probes
	}
	parts, order := report.Parts(rows)
	all := make([]row, len(rows))
	for i := range rows {
		all[i].Row = &rows[i]
		if probed[rows[i].Measure] {
			all[i].part, all[i].pair = parts[i], report.Field("pair").Of(measures, &rows[i])
		}
	}
	depth, relative, places := depths(models), report.RelativeDepth(rows), report.NewPlaces(rows)
	branch := report.Branches(models) // whether a layer is on a path that a shortcut passes by
	columns := []column[row]{
		{name: "measure", text: func(r row) string { return r.Measure }},
		{name: "section", text: func(r row) string {
			return sections[slices.IndexFunc(sections, func(s report.Section) bool { return s.Has(r.Row) })].Key
		}},
		{name: "statistic", text: func(r row) string { return r.Statistic }},
		{name: "transform", text: func(r row) string { return r.Transform }},
		{name: "warning", text: func(r row) string { return r.Warning }},
		{name: "part", text: func(r row) string { return r.part }},
		{name: "pair", text: func(r row) string { return r.pair }},
		{name: "place", text: func(r row) string { return places.Of(r.Model, r.Layer) }},
		{name: "branch", text: func(r row) string {
			if branch(r.Row) {
				return "in a branch"
			}
			return ""
		}},
		{name: "depth", number: func(r row) float64 { return float64(r.Depth) }},
		{name: "relative", number: func(r row) float64 { return relative(r.Row) }},
		{name: "otherDepth", number: func(r row) float64 { return float64(depth(r.OtherModel, r.OtherLayer)) }},
		{name: "confidence", number: func(r row) float64 { return report.Confidence(r.Row) }},
		{name: "trial", number: func(r row) float64 { return float64(r.Trial) }},
		{name: "value", number: func(r row) float64 { return r.Value }},
		{name: "low", number: func(r row) float64 { return r.Low }},
		{name: "high", number: func(r row) float64 { return r.High }},
		{name: "null", number: func(r row) float64 { return r.Null }},
		{name: "n", number: func(r row) float64 { return float64(r.N) }},
	}
	for _, f := range []report.Field{"model", "reference", "compared", "layer", "other", "data", "parameter", "variant", "factor"} {
		columns = append(columns, column[row]{name: string(f), text: func(r row) string { return f.Of(measures, r.Row) }})
	}
	t := packTable(all, columns)
	t.Order = order
	return t
}

// packText returns a column of texts; field returns that of a row.
func packText[T any](rows []T, field func(T) string) textColumn {
	c := textColumn{Values: []string{}, Codes: make([]int, len(rows))}
	codes := make(map[string]int)
	last, code := "", -1
	for i := range rows {
		// Adjacent rows mostly have the same text.
		if name := field(rows[i]); name != last || code < 0 {
			known := false
			if code, known = codes[name]; !known {
				code = len(c.Values)
				codes[name] = code
				c.Values = append(c.Values, name)
			}
			last = name
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

// packNumber returns a column of numbers, of which only one is kept if all are the same.
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
