package scores_test

import (
	"bytes"
	"maps"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/resample"
	"github.com/noether-ml/noether/scores"
)

func numbered(values ...float64) map[int]float64 {
	return maps.Collect(slices.All(values))
}

func TestGroupNumbers(t *testing.T) {
	t.Parallel()
	var hundred []float64
	for i := range 100 {
		hundred = append(hundred, float64(i))
	}
	for name, c := range map[string]struct {
		values []float64
		want   map[string]int // samples
	}{
		"few":      {[]float64{3, 1, 3, 1, 1, math.NaN(), math.Inf(1)}, map[string]int{"1": 3, "3": 2}},
		"quarters": {hundred, map[string]int{"0 to 24": 25, "25 to 49": 25, "50 to 74": 25, "75 to 99": 25}},
		// More than half are 0: equal numbers stay together.
		"ties": {append(make([]float64, 60), hundred[1:41]...), map[string]int{"0": 60, "1 to 15": 15, "16 to 40": 25}},
		"none": {nil, map[string]int{}},
	} {
		g := scores.GroupNumbers("x", numbered(c.values...))
		got := map[string]int{}
		for _, i := range g.Of {
			got[g.Groups[i]]++
		}
		if !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestGroupRows checks scores of groups, and the gap of the worst, for an accuracy and an error: of
// which the worst group is the other one.
func TestGroupRows(t *testing.T) {
	t.Parallel()
	values, site := map[int]float64{}, map[int]float64{}
	for i := range 100 {
		group := i % 3 // 34, 33 and 33 samples
		if i >= 96 {
			group = 3 // four samples, all wrong
		}
		site[i] = float64(group)
		if group == 0 || group == 1 && i%2 == 0 {
			values[i] = 1
		}
		values[i] += 0
	}
	g := scores.GroupCategories("site", []string{"A", "B", "C", "D", "empty"}, site)
	for direction, worst := range map[measure.Direction]int{measure.Higher: 2, measure.Lower: 0, measure.Neutral: -1} {
		rows := scores.GroupRows(scores.Row{Model: "m", Null: 1, P: 0.1, PAdjusted: 0.2, Warning: "w"}, values, measure.StatisticDescriptor{Name: "s", Range: measure.ZeroToOne, Direction: direction}, g)
		var names []string
		for _, r := range rows {
			names = append(names, r.Factor+" "+r.Variant)
		}
		want := []string{"site=A ", "site=B ", "site=C ", "site=D "}
		if worst >= 0 {
			want = append(want, "site="+g.Groups[worst]+" gap")
		}
		if !slices.Equal(names, want) {
			t.Fatalf("%q: %q, want %q", direction, names, want)
		}
		low, high := resample.Wilson(1, 32)
		if r := rows[0]; r.Value != 1 || math.Abs(r.Low-low) > 1e-9 || math.Abs(r.High-high) > 1e-9 || r.N != 32 || r.Model != "m" || r.Warning != "" || r.P != 0 || r.PAdjusted != 0 || !math.IsNaN(r.Null) {
			t.Errorf("site A: %+v", r)
		}
		if r := rows[3]; r.Value != 0 || r.N != 4 || r.Warning == "" {
			t.Errorf("site D: %+v", r)
		}
		if worst == 2 { // 48 of the other 68 are right, of the interval of three groups
			e := resample.Difference(resample.Mean(make([]float64, 32), measure.ZeroToOne, 0.05/3),
				resample.Mean(append(make([]float64, 20), slices.Repeat([]float64{1}, 48)...), measure.ZeroToOne, 0.05/3))
			if r := rows[4]; math.Abs(r.Value-e.Mean) > 1e-12 || math.Abs(r.Low-e.Low) > 1e-12 || math.Abs(r.High-e.High) > 1e-12 || r.N != 32 {
				t.Errorf("gap: %+v, want %+v", r, e)
			}
		}
	}
}

func TestGroupingsRoundTrip(t *testing.T) {
	t.Parallel()
	want := map[string][]scores.Grouping{
		"a": {{Column: "site", Groups: []string{"A", "B, or not"}, Of: map[int]int{1: 0, 4: 1, 7: 0}}, scores.GroupNumbers("hour", numbered(3, 4, 3))},
		"b": {{Column: "site", Groups: []string{"B"}, Of: map[int]int{0: 0}}},
	}
	var b bytes.Buffer
	if err := scores.WriteGroupings(&b, want); err != nil {
		t.Fatal(err)
	}
	got, err := scores.ReadGroupings(bytes.NewReader(b.Bytes()))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v %v, want %v", got, err, want)
	}
	for _, text := range []string{"", "a,b\n", "data,column,group,index\na,b,c,x\n"} {
		if _, err := scores.ReadGroupings(bytes.NewReader([]byte(text))); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}

// TestMistakes checks the order, the groups and the file of mistakes: dogs are broken more often
// than the rest, and most of them become cats.
func TestMistakes(t *testing.T) {
	t.Parallel()
	label := scores.Grouping{Column: "label", Groups: []string{"cat", "dog", "bird"}, Of: map[int]int{}}
	share := map[int]float64{}
	var all []scores.Mistake
	for i := range 120 {
		label.Of[i] = i % 3
		share[i] = 0
		if i%3 == 1 && i < 90 { // 30 of 40 dogs, at one of two values
			m := scores.Mistake{Kind: scores.Broken, Index: i, Label: "dog", Clean: "dog", Moved: "cat", Cost: float64(i) / 120, MovedConfidence: math.NaN(), Groups: map[string]string{"site": "A"}}
			if i < 9 {
				m.Moved = "bird"
			}
			all = append(all, m)
			share[i] = 0.5
		}
	}
	all = append(all, scores.Mistake{Kind: scores.Wrong, Cost: 1, Label: "cat", Clean: "dog"}, scores.Mistake{Kind: scores.Changed, Cost: 0.9})
	scores.SortMistakes(all)
	if all[0].Index != 88 || all[29].Index != 1 || all[30].Kind != scores.Changed || all[31].Kind != scores.Wrong {
		t.Errorf("order %+v", all)
	}
	groups := scores.GroupMistakes(share, all[:30], 2, label, nil)
	if len(groups) != 5 || groups[0].Group != "dog" || groups[0].Share.Mean != 0.375 || groups[0].N != 40 || groups[0].Gap.Mean != 0.375 || !(groups[0].Gap.Low > 0) {
		t.Fatalf("groups %+v", groups)
	}
	if pair := groups[3]; pair.Column != scores.ClassPair || pair.Group != "dog > cat" || pair.N != 40 || math.Abs(pair.Share.Mean-27*0.5/40) > 1e-12 {
		t.Errorf("pair %+v", pair)
	}
	if again := scores.GroupMistakes(share, all[:30], 2, label, []scores.Grouping{label}); !reflect.DeepEqual(len(again), len(groups)) {
		t.Error("a property label is grouped twice")
	}

	var b, c bytes.Buffer
	if err := scores.WriteMistakes(&b, all); err != nil {
		t.Fatal(err)
	}
	read, err := scores.ReadMistakes(bytes.NewReader(b.Bytes()))
	if err != nil || len(read) != len(all) || read[0].Groups["site"] != "A" || read[31].Label != "cat" || !math.IsNaN(read[0].MovedConfidence) || read[3].Cost != all[3].Cost {
		t.Errorf("read %+v %v", read, err)
	}
	if err := scores.WriteMistakeGroups(&c, groups); err != nil {
		t.Fatal(err)
	}
	back, err := scores.ReadMistakeGroups(bytes.NewReader(c.Bytes()))
	if err != nil || len(back) != 5 || back[0] != groups[0] || !math.IsNaN(back[3].Gap.Mean) {
		t.Errorf("read %+v %v", back, err)
	}
	if _, err := scores.ReadMistakes(bytes.NewReader([]byte("kind,cost\n"))); err == nil {
		t.Error("failures.csv without its columns is read")
	}
}
