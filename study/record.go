package study

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/fetch"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/study/spec"
)

// noteProgress writes how far the run is. A run of some of the models leaves that to those who know the whole study.
func (r *runner) noteProgress() error {
	if r.o.Only != nil {
		return nil
	}
	_, err := r.writeRecord(false)
	return err
}

// noteStart writes what a folder is to be told by before there are scores. A run of some of the models writes the study, for Merge to
// read, unless that stands there already.
func (r *runner) noteStart() error {
	if r.o.Only == nil {
		return r.noteProgress()
	}
	before, err := os.ReadFile(r.folder.path("study.yaml"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	r.plan.keepHashes(before)
	text, err := r.plan.resolved()
	if err != nil || text == string(before) {
		return err
	}
	return r.folder.writeText("study.yaml", text)
}

// writeRecord writes study.yaml and run.json.
func (r *runner) writeRecord(done bool) (scores.Record, error) {
	record := r.record(done)
	text, err := r.plan.resolved()
	if err == nil {
		err = r.folder.writeText("study.yaml", text)
	}
	if err == nil {
		err = scores.WriteRecord(r.folder.path("run.json"), record)
	}
	record.Resolved = text
	return record, err
}

func (r *runner) record(done bool) scores.Record {
	p := r.plan
	out := scores.Record{Study: p.Study.Name, Seed: p.Study.Seed, Noether: r.o.Version, Started: r.started, Cells: len(p.Cells), Engine: r.o.Record, Skipped: p.Skips, Missing: r.missing}
	for _, c := range p.Cells {
		if c.done {
			out.Done++
		}
	}
	used := r.resources()
	out.Used = &used
	for _, f := range r.failures.failed {
		f.Log, f.Inputs = nil, nil
		out.Failed = append(out.Failed, f)
	}
	if done {
		now := time.Now().UTC()
		out.Finished = &now
	}
	if p.only == nil { // else others fill the folder with theirs
		means := map[string]int{}
		for _, c := range p.Cells {
			f := c.failure()
			of := fmt.Sprintf("%q", []string{f.Model, f.Other, f.Data, f.Transform, f.Measure})
			if _, known := means[of]; !known {
				means[of] = len(means)
			}
			out.Keys, out.Means = append(out.Keys, c.Key), append(out.Means, means[of])
		}
	}
	for _, m := range r.missing {
		out.Warnings = append(out.Warnings, fmt.Sprintf("%d cells of model %s are missing: they lack %s", m.Cells, m.Model, (&MissingShards{Shards: m.Shards}).shards()))
	}
	out.Measures = p.descriptors()
	for _, m := range p.models {
		out.Models = append(out.Models, m.record())
	}
	for _, d := range p.data {
		out.Warnings = append(out.Warnings, d.warnings()...)
		out.Data = append(out.Data, d.record())
	}
	return out
}

// descriptors returns the descriptors of the measures of the study, each once, in the order of Families; measures that
// are not among Families come last, in the order of the study.
func (p *Plan) descriptors() []measure.Descriptor {
	var out []measure.Descriptor
	for _, m := range p.Study.Measures {
		d := m.Descriptor()
		if !slices.ContainsFunc(out, func(o measure.Descriptor) bool { return o.Name == d.Name }) {
			out = append(out, d)
		}
	}
	place := func(d measure.Descriptor) int {
		families := spec.Families()
		if i := slices.IndexFunc(families, func(f spec.Family) bool { return f.Name == d.Name }); i >= 0 {
			return i
		}
		return len(families)
	}
	slices.SortStableFunc(out, func(a, b measure.Descriptor) int { return place(a) - place(b) })
	return out
}

func (m *openModel) record() scores.ModelRecord {
	out := scores.ModelRecord{Name: m.spec.Name, Path: shown(m.spec.ONNX.String()), SHA256: m.model.SHA256(), Opset: m.model.Opset(), Tags: m.spec.Tags}
	for _, l := range m.model.Layers() {
		out.Layers = append(out.Layers, scores.LayerRecord{Name: l.Name, Op: l.Op, Depth: l.Depth, Shape: l.Shape, Axes: string(l.Axes)})
	}
	return out
}

func (d *openData) record() scores.DataRecord {
	return scores.DataRecord{Name: d.spec.Name, Kind: d.spec.Kind(), N: d.layout.N, Fingerprint: d.source.Fingerprint(), Unreadable: d.unreadable.names()}
}

// warnings are what a reader of the scores should know of the data.
func (d *openData) warnings() []string {
	var out []string
	for _, note := range dataset.Notes(d.source) {
		out = append(out, fmt.Sprintf("data %s: %s", d.spec.Name, note))
	}
	out = append(out, d.redrawn.warnings(d.spec.Name)...)
	if names := d.unreadable.names(); len(names) > 0 {
		out = append(out, fmt.Sprintf("data %s: %d of %d samples cannot be read and are left out: %s",
			d.spec.Name, len(names), d.layout.N, some(names, 10)))
	}
	return out
}

// shown is a path for people: a URL without what may be secret in it.
func shown(path string) string {
	if fetch.IsURL(path) {
		return fetch.Redact(path)
	}
	return path
}
