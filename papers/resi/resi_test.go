package main

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noether-ml/noether/scores"
)

// TestData checks the data sets that the command data makes of CIFAR-10 images: their sizes, labels
// and dots. The number in a name is the percentage of images whose label is drawn at random, or
// whose dot has the colour of the class. Of ten random classes, one is the same by chance. record
// counts the bytes of a label and an image, and plane those of a colour of the image.
func TestData(t *testing.T) {
	t.Parallel()
	const n = 400
	dir := t.TempDir()
	data := make([]byte, n*record)
	for i := range n {
		data[i*record] = byte(i % classes)
	}
	file := filepath.Join(dir, "batch.bin")
	if err := os.WriteFile(file, data, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := run([]string{"data", "-n", fmt.Sprint(n), "-o", filepath.Join(dir, "out"), file}, nil); err != nil {
		t.Fatal(err)
	}
	set := func(name string) []byte {
		raw, err := os.ReadFile(filepath.Join(dir, "out", name+".bin"))
		if err != nil || len(raw) != len(data) {
			t.Fatalf("%s has %d bytes, want %d; error %v", name, len(raw), len(data), err)
		}
		return raw
	}
	for name, want := range map[string]float64{"plain": 0, "labels-50": 0.45, "labels-100": 0.9} {
		var changed float64
		for i, images := 0, set(name); i < n; i++ {
			if images[i*record] != data[i*record] {
				changed += 1. / n
			}
		}
		if math.Abs(changed-want) > 0.08 || want == 0 && changed > 0 {
			t.Errorf("%s: %v of the labels differ, want %v", name, changed, want)
		}
	}
	for name, want := range map[string]float64{"dots-0": 0.1, "dots-50": 0.55, "dots-100": 1} {
		var same float64
		images := set(name)
		for i := range n {
			image := images[i*record : (i+1)*record]
			colour, dotted := [3]byte{}, 0
			for p := range plane {
				if c := [3]byte{image[1+p], image[1+plane+p], image[1+2*plane+p]}; c != [3]byte{} {
					colour = c
					dotted++
				}
			}
			if dotted < 20 || dotted > 45 {
				t.Fatalf("%s has a dot of %d pixels, want 20 to 45", name, dotted)
			}
			if colour == hue(float64(image[0])/classes) {
				same += 1. / n
			}
		}
		if math.Abs(same-want) > 0.08 || want == 1 && same < 1-1e-9 {
			t.Errorf("%s: %v of the dots have the colour of the class, want %v", name, same, want)
		}
	}
	if err := run([]string{"data", "-n", "401", "-o", dir, file}, nil); err == nil {
		t.Error("no error for more images than the file has")
	}
}

// pairRow returns a score of two networks, or of two layers of one.
func pairRow(measure, statistic, a, b, layer, other string, depth int, value float64) scores.Row {
	return scores.Row{Measure: measure, Statistic: statistic, Model: a, OtherModel: b, Layer: layer, OtherLayer: other, Depth: depth, Value: value}
}

// TestTable checks the table for a similarity that agrees with all six tests of Klabunde et al.
// 2025 (linear-cka), and for one that contradicts them (gulp, a distance with the same values).
// With s the seed of a network, its accuracy is 0.1 s². The disagreement of two networks grows, and
// their similarity falls, with the difference of their s². Networks of different groups, which are
// named by their training data, are less similar than those of one group.
func TestTable(t *testing.T) {
	t.Parallel()
	var runs [][]scores.Row
	for _, groups := range [][]string{{"plain", "labels-50"}, {"dots-0", "dots-100"}, {"plain", "noise-12"}} {
		var rows []scores.Row
		var names []string
		for _, g := range groups {
			for s := 1; s <= 4; s++ {
				names = append(names, fmt.Sprintf("%s-%d", g, s))
				rows = append(rows, scores.Row{Measure: "accuracy", Statistic: "clean", Model: names[len(names)-1], Value: 0.1 * float64(s*s)})
			}
		}
		for i, a := range names {
			for _, b := range names[i+1:] {
				ga, sa := groupOf(a)
				gb, sb := groupOf(b)
				difference := math.Abs(math.Pow(float64(sa[0]-'0'), 2) - math.Pow(float64(sb[0]-'0'), 2))
				similarity := 1 - difference/100
				if ga != gb {
					similarity = 0.5 - difference/100
				}
				rows = append(rows, pairRow("similarity", "linear-cka", a, b, "z", "z", 9, similarity),
					pairRow("similarity", "gulp", a, b, "z", "z", 9, similarity), // as a distance, gulp is lower for more similar pairs
					pairRow("prediction-agreement", "disagreement", a, b, "", "", 0, difference/20))
			}
		}
		runs = append(runs, rows)
	}
	var layers []scores.Row
	for i := range 4 {
		for j := i; j < 4; j++ {
			for _, name := range []string{"linear-cka", "gulp"} {
				layers = append(layers, pairRow("similarity", name, "plain-1", "plain-1", fmt.Sprint("z", i), fmt.Sprint("z", j), i, 1-0.1*float64(j-i)))
			}
		}
	}
	var out bytes.Buffer
	if err := writeTable(&out, append(runs, layers)); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 1+2*7 || !strings.HasPrefix(lines[1], "`linear-cka`,mean rank,1,") || !strings.HasPrefix(lines[8], "`gulp`,mean rank,2,") {
		t.Fatalf("want a header and 7 lines each for linear-cka and gulp, and the table is\n%s", out.String())
	}
	// The third column of a test is "rank: value".
	for i, line := range lines[2:8] {
		if f := strings.Split(line, ","); f[2] != "1: 1.00" {
			t.Errorf("test %d of linear-cka: %s, want 1: 1.00", i, line)
		}
	}
	for i, want := range []string{"2: -1.00", "2: -1.00", "2: 0.00", "2: 0.00", "2: 0.00", "2: 0.00"} {
		if f := strings.Split(lines[9+i], ","); f[2] != want {
			t.Errorf("test %d of gulp: %s, want %s", i, lines[9+i], want)
		}
	}
}

// TestRankOfMissing checks that a statistic without a value in a test has no rank there, and that
// its mean rank is that of its other tests.
func TestRankOfMissing(t *testing.T) {
	t.Parallel()
	high, low, missing := &result{value: 0.9}, &result{value: 0.5}, &result{value: math.NaN()}
	rank([]*result{high, low, missing})
	if high.rank != 1 || low.rank != 2 || !math.IsNaN(missing.rank) {
		t.Errorf("ranks %v, %v and %v, want 1, 2 and NaN", high.rank, low.rank, missing.rank)
	}
	if m := meanRank([]*result{missing, low}); m != 2 {
		t.Errorf("mean rank %v, want 2", m)
	}
}
