package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// header is the first line of scores.csv.
const header = "study,model,layer,depth,other_model,other_layer,data,transform,parameter,trial,measure,variant,factor,statistic,value,low,high,null,n,warning\n"

// runOn writes scores, rows in the columns of header, to a file and returns what the command prints
// of it.
func runOn(t *testing.T, scores string, args ...string) (string, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "scores.csv")
	if err := os.WriteFile(path, []byte(header+scores), 0o666); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	err := run(append(args, path), &out)
	return out.String(), err
}

// Three seeds of two networks, plain and affine: means over seeds, with Student's 95 % interval
// (the quantile for two degrees of freedom is 4.303), and means of the differences seed by seed,
// with narrower intervals. A row without a trial is the mean over trials (repetitions of the random
// draws of a study); then rows of single trials, here trial 0 with the value 9, are left out.
// null-equivariance is the column null (what chance alone gives) of equivariance.
func TestMeansOverSeeds(t *testing.T) {
	t.Parallel()
	scores := ""
	for seed, v := range map[string][2]string{"1": {"0.1", "0.3"}, "2": {"0.2", "0.4"}, "3": {"0.3", "0.5"}} {
		for i, network := range []string{"plain", "affine"} {
			name := "x,s/seed-" + seed + "-augment-" + network + ",l1,1,,,d,t,"
			scores += name + "0.5,0,seis,,,equivariance,9,,,9,5,\n" + name + ",,seis,,,equivariance," + v[i] + ",,,0.05,5,\n"
		}
	}
	got, err := runOn(t, scores, "table", "-row", "layer", "-column", "network", "-score", "equivariance,null-equivariance", "-digits", "3",
		"-of", "augment-affine", "-minus", "augment-plain", "-name", "augment-affine=affine,network:augment-plain=plain,layer:augment-plain=x", "-column", "score")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"layer,statistic,value,low,high\n",
		"l1,\"plain, equivariance\",0.200,-0.048,0.448\n",
		"l1,\"affine, equivariance\",0.400,0.152,0.648\n",
		"l1,\"affine - plain, equivariance\",0.200,0.200,0.200\n",
		"l1,\"plain, null-equivariance\",0.050,0.050,0.050\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
}

// A difference of networks that share no seed has Welch's interval: here the quantile of Student's
// t for 1.4706 degrees of freedom, 6.1881, times the standard error of 0.1118.
func TestUnpairedDifferences(t *testing.T) {
	t.Parallel()
	row := func(model, value string) string { return "x,s/" + model + ",,,,,d,,,,m,,,s," + value + ",,,,5,\n" }
	got, err := runOn(t, row("seed-1-a", "0.1")+row("seed-2-a", "0.2")+row("seed-3-b", "0.5")+row("seed-4-b", "0.7"),
		"table", "-row", "network", "-column", "score", "-score", "s", "-of", "b", "-minus", "a", "-unpaired", "-digits", "3")
	if want := "b - a,s,0.450,-0.242,1.142\n"; err != nil || !strings.Contains(got, want) {
		t.Errorf("%v: %q is missing in\n%s", err, want, got)
	}
}

// A difference has only the seeds that both networks have, so b - a has one, and no interval. A
// score that is not defined, here that of c, leaves its cell empty.
func TestMissingScores(t *testing.T) {
	t.Parallel()
	row := func(model, value string) string { return "x," + model + ",,,,,d,,,,m,,,s," + value + ",,,,5,\n" }
	got, err := runOn(t, row("seed-1-a/epoch-2", "1")+row("seed-2-a/epoch-2", "3")+row("seed-1-b/epoch-2", "4")+row("seed-1-c/epoch-2", ""),
		"table", "-row", "epoch", "-column", "network", "-score", "s", "-of", "b,c", "-minus", "a")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"2,a,2.00,-10.71,14.71\n", "2,b - a,3.00,,\n", "2,c,,,\n", "2,c - a,,,\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	for _, args := range [][]string{
		{"-row", "network", "-column", "score", "-score", "none"},
		{"-row", "data", "-column", "score", "-score", "s"}, // networks a and b in one cell
		{"-row", "data", "-score", "s"},
	} {
		if got, err := runOn(t, row("seed-1-a", "1")+row("seed-1-b", "1"), append([]string{"table"}, args...)...); err == nil {
			t.Errorf("%v: no error, but\n%s", args, got)
		}
	}
}

// The name of a model is SERIES/seed-SEED-NETWORK/epoch-EPOCH, of which parts may be missing; a
// training has the series, network, seed and epoch.
func TestTrainingOf(t *testing.T) {
	t.Parallel()
	for model, want := range map[string]training{
		"s/seed-2-augment-plain/epoch-3": {"s", "augment-plain", "2", "3"},
		"seed-1-augment-plain/epoch-12":  {"", "augment-plain", "1", "12"},
		"data-500/seed-3":                {"data-500", "data-500", "3", ""},
		"s/seed-1-network-fcn-tasks-one": {"s", "network-fcn-tasks-one", "1", ""},
		"resnet20":                       {"", "resnet20", "", ""},
	} {
		if got := trainingOf(model); got != want {
			t.Errorf("%s: %+v, not %+v", model, got, want)
		}
	}
}

// TestCorrelations checks the table of a correlation of scores with accuracy: Pearson's, with its
// interval, and Spearman's rank correlation. The column variant names both scores as measure,
// statistic and, after the @, transformation.
func TestCorrelations(t *testing.T) {
	t.Parallel()
	row := func(statistic, value, low, high string) string {
		return "x,,,,,,clean,,,,correlation,effective-invariance.ei@rotation ~ accuracy.clean,," + statistic + "," + value + "," + low + "," + high + ",,9,\n"
	}
	got, err := runOn(t, row("pearson", "0.914", "0.8", "0.95")+row("spearman", "-0.5", "", ""), "correlations", "-name", "effective-invariance.ei@rotation=EI")
	if want := "test set,statistic,value,spearman,low,high\nclean,EI,+0.91,-0.50,+0.80,+0.95\n"; err != nil || got != want {
		t.Errorf("the table is\n%s\nwant\n%s\nerror %v", got, want, err)
	}
	if _, err := runOn(t, row("pearson", "0.9", "", ""), "correlations"); err == nil {
		t.Error("no error without a rank correlation")
	}
}

// Deviations of the points apart are means over seeds, of one data set.
func TestDeviations(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "apart.json")
	text := `[{"of": "clean", "apart": [
		{"label": "a/seed-1-augment-turn", "deviation": {"value": -0.1, "low": -0.3, "high": 0.1}},
		{"label": "a/seed-2-augment-turn", "deviation": {"value": -0.2}},
		{"label": "a/seed-3-augment-crop", "deviation": {"value": 0.05}}]},
		{"of": "blurred", "apart": [{"label": "a/seed-1-augment-turn", "deviation": {"value": 9}}]}]`
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	err := run([]string{"deviations", "-data", "clean", "-name", "augment-turn=turn", "rotation=" + file}, &out)
	want := "network,statistic,value,low,high\nturn,rotation,-0.15,-0.79,+0.49\naugment-crop,rotation,+0.05,,\n"
	if err != nil || out.String() != want {
		t.Errorf("the table is %q, %v, want %q", out.String(), err, want)
	}
	for _, bad := range [][]string{{"rotation=" + file}, {file}, {"-data", "other", "rotation=" + file}, {"rotation=no.json"}} {
		if err := run(append([]string{"deviations"}, bad...), &out); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}
