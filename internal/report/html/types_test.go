package html

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/report"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/scores/correlation"
)

var update = flag.Bool("update", false, "write the types of the page's data for the browser again")

// TestTypes checks that web/src/generated.ts has the types of the JSON of a page's data.
func TestTypes(t *testing.T) {
	t.Parallel()
	const file = "web/src/generated.ts"
	want := typesOf(reflect.TypeFor[pageData]())
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil || string(got) != want {
		t.Errorf("%s differs from the types of Go (error %v): go test -run Types -update writes it", file, err)
	}
}

// typeNames are the names in the browser of types that have another one in Go.
var typeNames = map[reflect.Type]string{
	reflect.TypeFor[pageData]():                    "Packed",
	reflect.TypeFor[tableData]():                   "PackedTable",
	reflect.TypeFor[textColumn]():                  "TextColumn",
	reflect.TypeFor[columnData]():                  "ColumnTitle",
	reflect.TypeFor[measureData]():                 "Measure",
	reflect.TypeFor[modelData]():                   "Model",
	reflect.TypeFor[networkData]():                 "NetworkGraph",
	reflect.TypeFor[relationData]():                "Relation",
	reflect.TypeFor[report.Image]():                "ContactSheet",
	reflect.TypeFor[measure.StatisticDescriptor](): "Statistic",
}

// typeTexts are the types of JSON that does not follow from the type in Go.
var typeTexts = map[reflect.Type]string{
	reflect.TypeFor[numbers]():            "(number | null)[]",
	reflect.TypeFor[[]byte]():             "string", // base64
	reflect.TypeFor[measure.Range]():      "[number | null, number | null]",
	reflect.TypeFor[measure.Direction]():  "'higher' | 'lower'",
	reflect.TypeFor[correlation.By]():     "'model' | 'data'",
	reflect.TypeFor[report.Mark]():        "'line' | 'bar' | 'tile' | 'step'",
	reflect.TypeFor[report.ColourScale](): "{ unit: boolean; signed: boolean; stops: number[]; colours: string[]; inks: string[] }",
}

// nullable are the lists that may be null in JSON.
var nullable = map[reflect.Type]bool{
	reflect.TypeFor[[]report.Chart]():       true,
	reflect.TypeFor[[]report.Field]():       true,
	reflect.TypeFor[[]report.Statement]():   true,
	reflect.TypeFor[[]relationData]():       true,
	reflect.TypeFor[[]report.Image]():       true,
	reflect.TypeFor[[]report.Matrix]():      true,
	reflect.TypeFor[[]report.CurvePanel]():  true,
	reflect.TypeFor[[]report.SheetValue]():  true,
	reflect.TypeFor[[]report.SampleSheet](): true,
	reflect.TypeFor[[]networkData]():        true,
	reflect.TypeFor[[]report.MapSheet]():    true,
	reflect.TypeFor[[]scores.ByClass]():     true,
	reflect.TypeFor[[]scores.MapLayer]():    true,
}

// typesOf returns TypeScript interfaces for a type of Go and all types that it consists of.
func typesOf(root reflect.Type) string {
	found := map[string]string{}
	var text func(t reflect.Type) string
	var fields func(t reflect.Type) string
	fields = func(t reflect.Type) string {
		var b strings.Builder
		for i := range t.NumField() {
			f := t.Field(i)
			name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch {
			case f.Anonymous && name == "":
				b.WriteString(fields(f.Type))
				continue
			case name == "-" || !f.IsExported():
				continue
			}
			if strings.Contains(options, "omitempty") {
				name += "?"
			}
			null := ""
			if nullable[f.Type] && !strings.HasSuffix(name, "?") {
				null = " | null"
			}
			fmt.Fprintf(&b, "  %s: %s%s;\n", name, text(f.Type), null)
		}
		return b.String()
	}
	text = func(t reflect.Type) string {
		if known := typeTexts[t]; known != "" {
			return known
		}
		switch t.Kind() {
		case reflect.Bool:
			return "boolean"
		case reflect.String:
			return "string"
		case reflect.Pointer:
			return text(t.Elem())
		case reflect.Map:
			return fmt.Sprintf("Record<string, %s>", text(t.Elem()))
		case reflect.Slice:
			return text(t.Elem()) + "[]"
		case reflect.Array:
			return "[" + strings.Join(slices.Repeat([]string{text(t.Elem())}, t.Len()), ", ") + "]"
		case reflect.Struct:
			name := typeNames[t]
			if name == "" {
				name = t.Name()
			}
			if found[name] == "" {
				found[name] = "{" // so that a type may contain itself
				found[name] = fmt.Sprintf("export interface %s {\n%s}\n", name, fields(t))
			}
			return name
		default:
			return "number"
		}
	}
	text(root)
	out := "// The types of the page's data, whose fields the types of the same JSON in Go explain: see\n" +
		"// ../../data.go. Written by a test, types_test.go.\n"
	for _, name := range slices.Sorted(maps.Keys(found)) {
		out += "\n" + found[name]
	}
	return out
}
