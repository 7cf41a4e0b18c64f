package results

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/benchmark"
	"github.com/noether-ml/noether/internal/blocks"
	"github.com/noether-ml/noether/internal/catalog"
	"github.com/noether-ml/noether/internal/checksum"
	"github.com/noether-ml/noether/internal/fetch/uri"
	"github.com/noether-ml/noether/internal/machine"
	"github.com/noether-ml/noether/internal/plural"
	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/internal/study/spec"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/prediction"
	"github.com/noether-ml/noether/scores"
)

// WriteProgress updates study.yaml and run.json. With Options.Only it does nothing: the plan lacks
// the other models' cells.
func (r *Writer) WriteProgress() error {
	if r.Options.Only != nil {
		return nil
	}
	_, err := r.writeRecord(false)
	return err
}

// WriteStart writes study.yaml and run.json before there are scores; with Options.Only just
// study.yaml, if it changes, with the hashes of models that this run does not open.
func (r *Writer) WriteStart() error {
	if r.Options.Only == nil {
		return r.WriteProgress()
	}
	before, err := os.ReadFile(r.Folder.Path("study.yaml"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	r.Plan.KeepHashes(before)
	text, err := r.Plan.Resolved()
	if withChecksum := checksum.Prepend(text); err == nil && withChecksum != string(before) {
		err = r.Folder.writeText("study.yaml", withChecksum)
	}
	return err
}

// writeRecord writes study.yaml and run.json. See Record for done.
func (r *Writer) writeRecord(done bool) (scores.Record, error) {
	record := r.Record(done)
	text, err := r.Plan.Resolved()
	if err == nil {
		err = r.Folder.writeText("study.yaml", checksum.Prepend(text))
	}
	if err == nil && done {
		record.Files, err = r.Folder.sumFiles()
	}
	if err == nil {
		err = scores.WriteRecord(r.Folder.Path("run.json"), record)
	}
	record.Resolved = text
	return record, err
}

// Record returns the record that run.json holds. done says whether the run is finished.
func (r *Writer) Record(done bool) scores.Record {
	p := r.Plan
	out := scores.Record{Study: p.Study.Name, Description: p.Study.Description, Seed: p.Study.Seed, Noether: r.Options.Version, Started: r.started, Cells: len(p.Cells), Engine: r.Options.Record, Skipped: p.Skips, Missing: r.missing}
	for _, c := range p.Cells {
		if c.Done {
			out.Done++
		}
	}
	out.Used = &scores.Resources{Seconds: time.Since(r.Stats.Started).Seconds(), Stages: r.Stats.Times(),
		PeakMemory: max(r.earlierPeak, machine.PeakMemory())}
	if total := r.Stats.Total.Load(); total > 0 && !done {
		out.Work = &scores.Work{Done: r.Stats.Done.Load(), Total: total}
	}
	for _, f := range r.failures.Failed {
		f.Log, f.Inputs = nil, nil
		out.Failed = append(out.Failed, f)
	}
	if done {
		now := time.Now().UTC()
		out.Finished, out.Records = &now, r.recordsSum // a checksum over the files of all cells
	}
	if p.Only == nil { // else the plan lacks the cells of other models
		// means counts the cells averaged over values and trials.
		means := map[[5]string]int{}
		for _, c := range p.Cells {
			id := c.Identity()
			group := [5]string{id.Model, id.OtherModel, id.Data, id.Transform, id.Measure}
			if _, known := means[group]; !known {
				means[group] = len(means)
			}
			out.Keys, out.Means = append(out.Keys, c.Key), append(out.Means, means[group])
		}
	}
	for _, m := range r.missing {
		out.Warnings = append(out.Warnings, fmt.Sprintf("missing: %s of model %s, for lack of %s", plural.Of(m.Cells, "cell"), m.Model, (&MissingShards{Shards: m.Shards}).shards()))
	}
	out.Warnings = append(out.Warnings, r.imageless...)
	if out.Measures = descriptors(p); r.agreed {
		out.Measures = withAgreement(out.Measures)
	}
	if r.broken {
		out.Measures = append(out.Measures, scores.BreakingDescriptor())
	}
	for _, m := range p.Models {
		if text := plan.RandomWarning(m.Net); text != "" {
			out.Warnings = append(out.Warnings, fmt.Sprintf("model %s: %s", m.Entry.Name, text))
		}
		out.Models = append(out.Models, modelRecord(m))
	}
	// Listed is the title of the parameter that has a list of values.
	for _, t := range p.Study.Transforms {
		out.Transforms = append(out.Transforms, scores.TransformRecord{Name: t.Name, Parameter: t.Listed})
	}
	for _, d := range p.Data {
		out.Warnings = append(out.Warnings, dataWarnings(d)...)
		out.Data = append(out.Data, dataRecord(d))
	}
	return out
}

// withAgreement returns the descriptors with that of prediction-agreement.
func withAgreement(all []measure.Descriptor) []measure.Descriptor {
	d := prediction.ModelAgreementDescriptor()
	if slices.ContainsFunc(all, func(o measure.Descriptor) bool { return o.Name == d.Name }) {
		return all
	}
	return append(all, d)
}

// descriptors returns each measure once, in the order of catalog.Measures, then unlisted ones in
// that of the study. Reading describes each of a measure's settings.
func descriptors(p *plan.Plan) []measure.Descriptor {
	var out []measure.Descriptor
	for _, m := range p.Study.Measures {
		d := m.Descriptor()
		i := slices.IndexFunc(out, func(o measure.Descriptor) bool { return o.Name == d.Name })
		switch {
		case i < 0:
			out = append(out, d)
		case !strings.Contains(out[i].Reading, d.Reading):
			out[i].Reading += " With other settings: " + d.Reading
		}
	}
	familyIndex := func(d measure.Descriptor) int {
		families := catalog.Measures()
		if i := slices.IndexFunc(families, func(f spec.Family) bool { return f.Descriptor.Name == d.Name }); i >= 0 {
			return i
		}
		return len(families)
	}
	slices.SortStableFunc(out, func(a, b measure.Descriptor) int { return familyIndex(a) - familyIndex(b) })
	return out
}

// Branch says that a shortcut bypasses the layer.
func modelRecord(m *plan.Model) scores.ModelRecord {
	out := scores.ModelRecord{Name: m.Entry.Name, Path: redactURL(m.Entry.Address().String()), SHA256: m.Net.SHA256(), Opset: m.Net.Opset(), Tags: m.Entry.Tags, Stated: statedAccuracy(m)}
	var inside map[string]bool
	if graph := m.Net.Graph(); graph != nil {
		inside = blocks.InBranches(graph, m.Net.Input().Name, m.Net.Output(), m.Net.Layers())
		var outputs []string
		for _, o := range graph.Outputs() {
			outputs = append(outputs, o.Name)
		}
		for _, o := range blocks.Outline(graph, m.Net.Input().Name, outputs...) {
			out.Graph = append(out.Graph, scores.OperationRecord(o))
		}
	}
	for _, l := range m.Net.Layers() {
		out.Layers = append(out.Layers, scores.LayerRecord{Name: l.Name, Op: l.Op, Depth: l.Depth, Shape: l.Shape, Axes: string(l.Axes), Branch: inside[l.Name]})
	}
	return out
}

func dataRecord(d *plan.Data) scores.DataRecord {
	out := scores.DataRecord{Name: d.Entry.Name, Kind: d.Entry.Kind(), N: d.Layout.N, Fingerprint: d.Source.Fingerprint(), Unreadable: d.Unreadable.Names()}
	if b := d.Entry.Benchmark; b != nil {
		out.Benchmark = &scores.BenchmarkRecord{Name: b.Name, Kind: b.Kind, Severity: b.Severity, Own: b.Own}
		if b.Kind != benchmark.Clean {
			out.Corruption = b.Kind
		}
	}
	if c := d.Entry.Corrupt; c != nil {
		out.Corruption = c.Kinds[0] // package spec replaced an entry with several kinds by one entry for each
	}
	return out
}

func dataWarnings(d *plan.Data) []string {
	var out []string
	for _, note := range dataset.Notes(d.Source) {
		out = append(out, fmt.Sprintf("data %s: %s", d.Entry.Name, note))
	}
	out = append(out, d.Redrawn.Warnings(d.Entry.Name)...) // on parameter values that were drawn again
	if names := d.Unreadable.Names(); len(names) > 0 {
		out = append(out, fmt.Sprintf("data %s: %d of %s cannot be read and are left out: %s",
			d.Entry.Name, len(names), plural.Of(d.Layout.N, "sample"), firstNames(names, 10)))
	}
	return out
}

// redactURL removes parts that may be secret.
func redactURL(path string) string {
	if uri.IsURL(path) {
		return uri.Redact(path)
	}
	return path
}
