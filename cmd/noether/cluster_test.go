package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/cluster"
	"github.com/noether-ml/noether/internal/testmodel"
)

// TestCluster checks the exit codes and messages of the subcommands of noether cluster. No cluster
// is needed: a submission to Kubernetes only writes a manifest, and the tasks run in this process.
func TestCluster(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	dir := t.TempDir()
	testmodel.Write(t, dir, "m", testmodel.Options{}) // m.onnx, a small network with a layer conv
	study := write(t, dir, "study.yaml", []byte(`name: small
data: [{name: shapes, shapes: {n: 60, size: 16}}]
models: [{name: m, onnx: m.onnx, layers: [conv]}]
transforms: [{rotate: 90}]
measures: [distance]
`))
	run := filepath.Join(dir, "run")
	profile := write(t, dir, "k8s.yaml", []byte("kubernetes: {image: noether, claim: shared, mount: "+dir+"}\n"))
	submit := []string{"cluster", "submit", study, "-o", run, "--calibrate", "0s", "--tasks", "2"} // 0s: do not measure the cost of models
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{submit, 2, "--slurm or --kubernetes"},
		{append(submit, "--slurm", "--kubernetes"), 2, "--slurm or --kubernetes"},
		{append(submit, "--slurm", "--time", "soon"), 2, "not a duration"},
		{append(submit, "--slurm", "--mem", "much"), 2, "size"},
		{append(submit, "--slurm", "--gpus", "all"), 2, "GPUs"},
		{append(submit, "--slurm", "--partition", "a b"), 2, "partition"},
		{append(submit, "--slurm", "--profile", filepath.Join(dir, "none.yaml")), 1, "none.yaml"},
		{append(submit, "--kubernetes"), 1, "image, claim and mount"},
		{[]string{"cluster", "status", run}, 1, "nothing was submitted"},
		{[]string{"cluster", "restart"}, 2, "restart"},
		{append(submit, "--slurm", "--dry-run"), 0, ""},
		{append(submit, "--kubernetes", "--profile", profile, "--dry-run", "--json"), 0, ""},
	} {
		if code, message := call(t, c.args...); code != c.code || !strings.Contains(message, c.want) {
			t.Errorf("%v exits with %d and says %q; want %d and %q", c.args, code, message, c.code, c.want)
		}
	}
	if _, err := os.Stat(filepath.Join(run, "cluster.json")); err == nil {
		t.Error("a dry run submits jobs")
	}

	if code, message := call(t, append(submit, "--kubernetes", "--profile", profile)...); code != 0 {
		t.Fatal(message)
	}
	if _, err := os.Stat(cluster.ManifestPath(run, 1)); err != nil {
		t.Error(err)
	}
	// In this order: the tasks are first queued, then finished, then merged.
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{append(submit, "--kubernetes", "--profile", profile), 1, "queued or running"},
		{[]string{"cluster", "wait", run, "--every", "1ms", "--timeout", "5ms"}, 1, "queued or running"},
		{[]string{"cluster", "task", run}, 2, "number of a task"},
		{[]string{"cluster", "task", run, "3"}, 1, "no task 3"},
		{[]string{"cluster", "task", run, "1"}, 0, ""},
		{[]string{"cluster", "task", run, "2", "--save-every", "1ms"}, 0, ""},
		{[]string{"cluster", "wait", run, "--json"}, 0, ""},
		{[]string{"cluster", "status", run, "--all"}, 0, ""},
		{[]string{"cluster", "status", run, "--submission", "2"}, 1, "submission 2 does not exist"},
		{[]string{"cluster", "logs", run, "--lines", "0"}, 2, "--lines"},
		{[]string{"cluster", "logs", run, "--task", "7"}, 1, "no task 7"},
		{[]string{"cluster", "logs", run, "--task", "1", "--merge", "--json"}, 0, ""},
		{[]string{"cluster", "retry", run}, 1, "delete its jobs"},
		{[]string{"cluster", "cancel", run}, 1, "kubectl delete"},
		{[]string{"merge", run}, 0, ""},
		{append(submit, "--kubernetes", "--profile", profile), 1, "all cells are finished"},
	} {
		if code, message := call(t, c.args...); code != c.code || !strings.Contains(message, c.want) {
			t.Errorf("%v exits with %d and says %q; want %d and %q", c.args, code, message, c.code, c.want)
		}
	}
}
