package plainjson

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
)

type example struct {
	Text   string
	Ints   []int
	Floats []float64
}

// code writes or reads an example as encoding/json writes it.
func (e *example) code(c *Codec) {
	c.String(`{"Text":`, &e.Text)
	List(c, `,"Ints":`, &e.Ints, func(v *int) { c.Int("", v) })
	List(c, `,"Floats":`, &e.Floats, func(v *float64) { c.Float("", v) })
	c.Literal("}")
}

func TestSameAsEncodingJSON(t *testing.T) {
	t.Parallel()
	for _, e := range []example{
		{"", []int{}, []float64{}},
		{"conv 1 \x00 \"<é>\\", []int{0, -1, math.MaxInt}, []float64{0, math.Copysign(0, -1), 1e-7, -2.5e-10, 1e21, 1e300, 123456.75, math.MaxFloat64, math.SmallestNonzeroFloat64}},
		{"é", []int{7}, []float64{1e20, 1e-6}},
	} {
		want, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		got := Append(nil, e.code)
		if !bytes.Equal(got, want) {
			t.Errorf("appended %s, want %s", got, want)
		}
		again := example{Ints: []int{}, Floats: []float64{}}
		if err := Read(got, again.code); err != nil {
			t.Error(err)
		}
		if text := Append(nil, again.code); !bytes.Equal(text, want) {
			t.Errorf("read %s, want %s", text, want)
		}
	}
}

// TestOtherTexts checks that no text but that of a writer is read.
func TestOtherTexts(t *testing.T) {
	t.Parallel()
	text := Append(nil, (&example{"a", []int{1, -20}, []float64{0.5, 1e-9}}).code)
	for n := range text {
		if err := Read(text[:n], new(example).code); err == nil || !strings.Contains(err.Error(),
			"truncated") {
			t.Errorf("%s: error %v, want one with %q", text[:n], err, "truncated")
		}
	}
	for _, other := range []string{
		`{"Text": "a","Ints":[],"Floats":[]}`, `{"Text":"a","Ints":[],"Floats":[]} `, `{"Text":"a\x","Ints":[],"Floats":[]}`, "{\"Text\":\"a\n\",\"Ints\":[],\"Floats\":[]}",
		`{"Text":"a","Ints":[1.5],"Floats":[]}`, `{"Text":"a","Ints":[+1],"Floats":[]}`, `{"Text":"a","Ints":[1,],"Floats":[]}`,
		`{"Text":"a","Ints":[],"Floats":[.5]}`, `{"Text":"a","Ints":[],"Floats":[NaN]}`, `{"Text":"a","Ints":[],"Floats":[0x1]}`,
		`{"Text":"a","Ints":[01],"Floats":[]}`, "{\"Text\":\"\xff\",\"Ints\":[],\"Floats\":[]}",
	} {
		if Read([]byte(other), new(example).code) == nil {
			t.Errorf("%q is read", other)
		}
	}
}
