package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/noether-ml/noether/internal/mlflow"
	"github.com/noether-ml/noether/internal/report"
	"github.com/noether-ml/noether/internal/report/figure"
	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/scores"
)

// log logs the study and its figures, and a nested run with the scores of each model.
func (e *exportFlags) log(c *cobra.Command, dir string) error {
	result, err := study.ReadResult(dir)
	if err != nil {
		return err
	}
	rows, err := e.filter.Rows(result.Rows)
	if err != nil {
		return err
	}
	client, err := mlflow.New(e.mlflow, mlflow.Credentials{
		Token: os.Getenv("MLFLOW_TRACKING_TOKEN"), User: os.Getenv("MLFLOW_TRACKING_USERNAME"), Password: os.Getenv("MLFLOW_TRACKING_PASSWORD"),
	})
	if err != nil {
		return &usageError{c, err}
	}
	ctx, record := c.Context(), result.Record
	experiment, err := client.Experiment(ctx, cmp.Or(e.experiment, record.Study))
	if err != nil {
		return err
	}
	run, err := client.Start(ctx, experiment, filepath.Base(filepath.Clean(dir)), "", record.Started)
	if err != nil {
		return err
	}
	l := &mlflowLog{client: client, experiment: experiment, parent: run, record: record, dir: dir, rows: rows}
	err = errors.Join(l.study(ctx), l.models(ctx))
	if err := endRun(ctx, run, record, err == nil); err != nil {
		return err
	}
	if err != nil {
		return err
	}
	note(fmt.Sprintf("%s is run %s of experiment %s", dir, run.ID, experiment))
	return nil
}

func endRun(ctx context.Context, run *mlflow.Run, record scores.Record, ok bool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	at := time.Now()
	if record.Finished != nil {
		at = *record.Finished
	}
	return run.End(ctx, ok, at)
}

// An mlflowLog logs one run folder to an MLflow server.
type mlflowLog struct {
	client     *mlflow.Client
	experiment string        // its id
	parent     *mlflow.Run   // with the study; the runs of the models are nested in it
	record     scores.Record // of the run folder
	dir        string        // the run folder
	rows       []scores.Row
}

func (l *mlflowLog) study(ctx context.Context) error {
	r := l.record
	params := map[string]string{"study": r.Study, "seed": strconv.FormatUint(r.Seed, 10), "noether": r.Noether, "onnxruntime": r.Engine.ONNXRuntime}
	for _, d := range r.Data {
		params["data/"+d.Name+"/samples"], params["data/"+d.Name+"/fingerprint"] = strconv.Itoa(d.N), d.Fingerprint
	}
	if err := l.parent.Log(ctx, params, nil, nil); err != nil {
		return err
	}
	for _, name := range []string{"study.yaml", "run.json", "scores.csv", "scores.parquet", "report.html"} {
		if err := l.file(ctx, name); err != nil {
			return l.ignoreArtifactError(err)
		}
	}
	return l.ignoreArtifactError(l.figures(ctx))
}

// ignoreArtifactError prints the error of a server that does not store artifacts, once.
func (l *mlflowLog) ignoreArtifactError(err error) error {
	if errors.Is(err, mlflow.ErrArtifacts) {
		note(err.Error() + "; scores are logged, files and figures are not")
		return nil
	}
	return err
}

func (l *mlflowLog) file(ctx context.Context, name string) error {
	file, err := os.Open(filepath.Join(l.dir, name))
	if errors.Is(err, os.ErrNotExist) {
		return nil // an unfinished run has no scores.csv
	}
	if err != nil {
		return err
	}
	defer file.Close()
	return l.parent.Artifact(ctx, name, file)
}

// figures logs the charts that can be drawn from the scores, as PDF and PNG.
func (l *mlflowLog) figures(ctx context.Context) error {
	for _, chart := range []figure.Chart{figure.Depth, figure.Parameter, figure.Bars, figure.Heat} {
		f, err := figure.Draw(l.rows, figure.Options{Chart: chart, Columns: 2, Measures: l.record.Measures})
		if err != nil {
			continue
		}
		for _, format := range []string{"pdf", "png"} {
			var b bytes.Buffer
			if err := f.Write(&b, format); err != nil {
				return err
			}
			if err := l.parent.Artifact(ctx, "figures/"+string(chart)+"."+format, io.Reader(&b)); err != nil {
				return err
			}
		}
	}
	return nil
}

// models logs a run with the tags and scores of each model that has scores.
func (l *mlflowLog) models(ctx context.Context) error {
	for _, m := range l.record.Models {
		metrics := l.metrics(m.Name)
		if len(metrics) == 0 {
			continue
		}
		run, err := l.client.Start(ctx, l.experiment, m.Name, l.parent.ID, l.record.Started)
		if err != nil {
			return err
		}
		params := map[string]string{"model": m.Path, "sha256": m.SHA256, "opset": strconv.Itoa(m.Opset)}
		err = run.Log(ctx, params, m.Tags, metrics)
		if err := errors.Join(err, endRun(ctx, run, l.record, err == nil)); err != nil {
			return err
		}
	}
	return nil
}

// A statistic that each layer has is one metric whose steps are the depths of the layers. Scores of
// whole models come with the bounds of their intervals, as the metrics KEY/low and KEY/high.
func (l *mlflowLog) metrics(model string) []mlflow.Metric {
	at := l.record.Started
	if l.record.Finished != nil {
		at = *l.record.Finished
	}
	var out []mlflow.Metric
	for _, r := range report.OverTrials(l.rows) {
		if r.Model != model {
			continue
		}
		key, step := metricKey(&r, len(l.record.Data) > 1), int64(max(0, r.Depth))
		add := func(key string, v float64) {
			out = append(out, mlflow.Metric{Key: key, Value: v, Time: at.UnixMilli(), Step: step})
		}
		add(key, r.Value)
		if r.Layer == "" {
			add(key+"/low", r.Low)
			add(key+"/high", r.High)
		}
	}
	return out
}

// metricKey returns, for instance, effective-invariance.ei/rotation/90, without the layer.
func metricKey(r *scores.Row, severalData bool) string {
	parts := []string{r.Measure + "." + r.Statistic}
	if severalData {
		parts = append(parts, r.Data)
	}
	for _, p := range []string{r.OtherModel, r.Transform, r.Parameter, r.Variant, r.Factor} {
		if p != "" {
			parts = append(parts, strings.ReplaceAll(p, "/", "-"))
		}
	}
	if r.OtherLayer != "" && r.OtherLayer != r.Layer {
		parts = append(parts, strings.ReplaceAll(r.OtherLayer, "/", "-"))
	}
	return strings.Join(parts, "/")
}
