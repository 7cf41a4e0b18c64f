package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/noether-ml/noether/internal/plural"
	"github.com/noether-ml/noether/internal/report"
	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/study/spec"
	"github.com/noether-ml/noether/scores"
)

// unlikeKinds are the kinds of an unlikeness, as --accept names them.
var unlikeKinds = []string{"data", "n", "seed", "transforms", "preprocess"}

// An unlikeness is something other than the model that differs between two runs.
type unlikeness struct{ kind, text string }

// unlike returns how the runs differ in what the given differences depend on.
func (d runsDifference) unlike(differences []scores.Difference) []unlikeness {
	var out []unlikeness
	add := func(kind, format string, args ...any) {
		if u := (unlikeness{kind, fmt.Sprintf(format, args...)}); !slices.Contains(out, u) {
			out = append(out, u)
		}
	}
	a, b := d.records[0], d.records[1]
	if a.Seed != b.Seed {
		add("seed", "the seeds of the random draws are %d and %d", a.Seed, b.Seed)
	}
	for _, s := range differences {
		dataA, dataB := dataRecord(a, s.A.Data), dataRecord(b, s.A.Data)
		switch {
		case dataA.N != dataB.N:
			add("n", "%s has %s in A and %d in B", s.A.Data, plural.Of(dataA.N, "sample"), dataB.N)
		case dataA.Fingerprint == "" || dataB.Fingerprint == "":
			add("data", "it is not known whether %s has the same samples in both runs", s.A.Data)
		case dataA.Fingerprint != dataB.Fingerprint:
			add("data", "%s has other samples in B", s.A.Data)
		case s.A.N != s.B.N:
			add("n", "%s.%s on %s is of %d observations in A and %d in B", s.A.Measure, s.A.Statistic, s.A.Data, s.A.N, s.B.N)
		}
		if name := s.A.Transform; transformText(d.studies[0], name) != transformText(d.studies[1], name) {
			add("transforms", "%s has other values in B", name)
		}
		if preprocessText(d.studies[0], s.A.Model) != preprocessText(d.studies[1], s.B.Model) {
			add("preprocess", "%s and %s have other preprocessing", s.A.Model, s.B.Model)
		}
	}
	return out
}

func dataRecord(r scores.Record, name string) scores.DataRecord {
	for _, d := range r.Data {
		if d.Name == name {
			return d
		}
	}
	return scores.DataRecord{}
}

// transformText identifies a transformation of a study with all its values.
func transformText(s *study.Study, name string) string {
	for i := range s.Transforms {
		if t := &s.Transforms[i]; t.Name == name {
			return spec.CanonicalJSON([]any{t.CanonicalForm(), t.Per, t.On})
		}
	}
	return ""
}

// preprocessText identifies the preprocessing that a study gives a model.
func preprocessText(s *study.Study, name string) string {
	for _, m := range s.Models {
		if m.Name == name {
			return spec.CanonicalJSON(m.Preprocess.Settings)
		}
	}
	return ""
}

// printPairing prints how the scores of the two runs are paired, and in what the runs are not
// alike.
func (d runsDifference) printPairing() {
	width := terminalWidth(os.Stdout)
	var paired, unpaired []string
	for _, s := range d.scores {
		names := &unpaired
		if s.Paired {
			names = &paired
		}
		if !slices.Contains(*names, s.A.Data) {
			*names = append(*names, s.A.Data)
		}
	}
	if len(paired) > 0 {
		printFolded(stdout, width, "Paired by sample, where scores allow it: %s", report.Printable(strings.Join(paired, ", ")))
	}
	if rest := slices.DeleteFunc(unpaired, func(name string) bool { return slices.Contains(paired, name) }); len(rest) > 0 {
		printFolded(stdout, width, "Not paired, as if the samples were others: %s", report.Printable(strings.Join(rest, ", ")))
	}
	for _, u := range d.unlike(d.scores) {
		printFolded(stdout, width, "warning: not alike: %s", report.Printable(u.text))
	}
}

// sameFolder reports whether two paths are of one folder.
func sameFolder(a, b string) bool {
	infoA, errA := os.Stat(filepath.Clean(a))
	infoB, errB := os.Stat(filepath.Clean(b))
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}
