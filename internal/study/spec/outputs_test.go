package spec

import (
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/measure/decoded"
)

// TestOutputsByLabel checks which output of a model each class of the data is: that whose label has
// the name of the class or, without any such label, the one at the same index. The key classes of
// the data can list labels or indices instead, and restricts the model to these outputs.
func TestOutputsByLabel(t *testing.T) {
	t.Parallel()
	labels := []string{"tabby, tabby cat", "crane", "crane", "Apple_Pie", "hot dog"} // of the model's outputs
	cases := []struct {
		name     string
		data     []string // names of the classes of the data
		explicit []string // value of the key classes of the data
		want     []int    // the model's output for each class of the data
		err      string   // part of the error, in place of want
	}{
		{"other order, fewer", []string{"hot-dog", "apple pie"}, nil, []int{4, 3}, ""},
		{"one of the names of a label, a whole label", []string{"Tabby Cat", "hot dog"}, nil, []int{0, 4}, ""},
		{"no label, as many", []string{"a", "b", "c", "d", "e"}, nil, []int{0, 1, 2, 3, 4}, ""},
		{"no label, fewer", []string{"a", "b"}, nil, nil, "the data have 2 classes and the model has 5"},
		{"one is no label", []string{"hot dog", "a", "tabby", "apple pie", "b"}, nil, nil, `class "a" of the data is not a label of the model, but 3 of 5 classes are`},
		{"a label of two outputs", []string{"hot dog", "crane"}, nil, nil, `class "crane"`},
		{"labels given", []string{"x", "y"}, []string{"hot dog", "1"}, []int{4, 1}, ""},
		{"no label given", []string{"x", "y"}, []string{"crane", "1"}, nil, `"crane" is neither an index of an output, an ImageNet synset nor a label`},
	}
	for _, c := range cases {
		got, restrict, err := Data{Classes: c.explicit}.Outputs(c.data, len(labels), labels)
		if err == nil && (!slices.Equal(got, c.want) || restrict != (c.explicit != nil)) || (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: outputs %v, restricted %v, error %v; want %v, error %q", c.name, got, restrict, err, c.want, c.err)
		}
	}
	if names := OutputNames([]string{"pie"}, []int{3}, 5, labels); !slices.Equal(names, []string{"tabby, tabby cat", "crane", "crane", "pie", "hot dog"}) {
		t.Errorf("the names are %q, want the labels, with pie for the fourth", names)
	}
}

// TestOrderDoubt checks that classes whose names hold numbers have a doubt if their order as text
// is another one than that of the numbers, and nothing but their order says which output is theirs.
func TestOrderDoubt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		names    []string
		classes  int
		explicit []string
		labels   []string
		doubt    string // part of it
	}{
		{[]string{"0", "1", "10", "2"}, 4, nil, nil, `"10" before "2"`},
		{[]string{"class_1", "class_10", "class_9"}, 3, nil, nil, `"class_10" before "class_9"`},
		{[]string{"v1.10", "v1.9"}, 2, nil, nil, `"v1.10" before "v1.9"`},
		{[]string{"00", "01", "10"}, 3, nil, nil, ""},
		{[]string{"0", "1", "2", "NA"}, 4, nil, nil, ""},
		{[]string{"cat", "dog"}, 2, nil, nil, ""},
		{[]string{"a10", "b2"}, 2, nil, nil, ""},
		{[]string{"0", "1", "10", "2"}, 4, []string{"0", "1", "3", "2"}, nil, ""},
		{[]string{"c10", "c2"}, 2, nil, []string{"c2", "c10"}, ""},
		{[]string{"c10", "c2"}, 5, nil, nil, ""}, // Outputs returns an error
		{make([]string, 1000), 1001, nil, nil, "for the background"},
		{make([]string, 999), 1001, nil, nil, ""},
		{make([]string, 1000), 1001, nil, make([]string, 1001), ""},
	} {
		if got := (Data{Classes: c.explicit}).OrderDoubt(c.names, c.classes, c.labels); (got != "") != (c.doubt != "") || !strings.Contains(got, c.doubt) {
			t.Errorf("%q: doubt %q, want %q", c.names, got, c.doubt)
		}
	}
}

// TestMaskOutputs checks which class of a segmentation model each category of labelled masks is.
func TestMaskOutputs(t *testing.T) {
	t.Parallel()
	background, cat, dog := dataset.TruthClass{Name: "background"}, dataset.TruthClass{ID: 2, Name: "cat"}, dataset.TruthClass{ID: 5, Name: "dog"}
	zero := dataset.TruthClass{ID: 0, Name: "zero"}
	for name, c := range map[string]struct {
		listed     []string             // value of the key classes of the data
		categories []dataset.TruthClass // of the masks, after the background
		names      []string             // of the model's classes; nil: not known
		classes    int                  // of the model
		want       []int                // the model's class of the background and of each category; -1: none
		err        string               // part of the error, in place of want
	}{
		"by order":             {nil, []dataset.TruthClass{cat, dog}, nil, 3, []int{0, 1, 2}, ""},
		"by number":            {nil, []dataset.TruthClass{cat, dog}, nil, 6, []int{0, 2, 5}, ""},
		"without a background": {nil, []dataset.TruthClass{cat, dog}, nil, 2, nil, "the data have 2 categories, with numbers up to 5, and a background, and the model has 2 classes without names"},
		"a category 0":         {nil, []dataset.TruthClass{zero, cat}, nil, 8, nil, "set classes"},
		"names":                {nil, []dataset.TruthClass{cat, dog}, []string{"dog", "cat", "__background__"}, 3, []int{2, 1, 0}, ""},
		"no such name":         {nil, []dataset.TruthClass{cat, dog}, []string{"dog", "horse", "background"}, 3, nil, `category "cat" of the data is not a class`},
		"first is background":  {nil, []dataset.TruthClass{cat, dog}, []string{"other", "dog", "cat"}, 3, []int{0, 2, 1}, ""},
		"no background":        {nil, []dataset.TruthClass{cat, dog}, []string{"dog", "cat"}, 2, []int{-1, 1, 0}, ""},
		"listed":               {[]string{"-1", "3"}, []dataset.TruthClass{cat, dog}, nil, 4, []int{0, -1, 3}, ""},
		"listed by name":       {[]string{"hound", "0"}, []dataset.TruthClass{cat, dog}, []string{"hound", "background"}, 2, []int{1, 0, 0}, ""},
		"a class too large":    {[]string{"1", "4"}, []dataset.TruthClass{cat, dog}, nil, 4, nil, "classes: 4 is not a class of the model, which has 4"},
	} {
		got, err := Data{Classes: c.listed}.MaskOutputs(append([]dataset.TruthClass{background}, c.categories...), &decoded.Format{Classes: c.classes, Names: c.names})
		if err == nil && !slices.Equal(got, c.want) || (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: outputs %v, error %v; want %v, error %q", name, got, err, c.want, c.err)
		}
	}
}
