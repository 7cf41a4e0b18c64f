package policy

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/junit"
	"github.com/noether-ml/noether/internal/junit/junittest"
	"github.com/noether-ml/noether/internal/schematest"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

// evidence returns a run of the models float and int8 on n samples, rotated by 5 and 10 degrees.
// float has every sample right, and int8 a sample wrong if wrong says so.
func evidence(n int, wrong func(parameter string, sample int) bool) Evidence {
	statistic := measure.StatisticDescriptor{Name: "moved", Range: measure.ZeroToOne, Direction: measure.Higher, PerSample: true}
	e := Evidence{Record: scores.Record{Measures: []measure.Descriptor{{Name: "accuracy", Statistics: []measure.StatisticDescriptor{statistic}}}},
		Groupings: map[string][]scores.Grouping{"street": {{Column: "camera", Groups: []string{"north", "tunnel"}, Of: map[int]int{}}}},
		Neutral:   func(string) (float64, error) { return 0, nil }, Transforms: []string{"tilt", "fog"}}
	for i := range n {
		e.Groupings["street"][0].Of[i] = 0
		if i%10 == 9 {
			e.Groupings["street"][0].Of[i] = 1
		}
	}
	nan := math.NaN()
	for _, model := range []string{"float", "int8"} {
		for _, parameter := range []string{"5", "10"} {
			right := 0
			for i := range n {
				row := scores.SampleRow{Model: model, Data: "street", Transform: "tilt", Parameter: parameter, Measure: "accuracy", Index: i, Statistic: "correct-clean", Value: 1}
				e.Samples = append(e.Samples, row)
				row.Statistic = "correct-moved"
				if model == "int8" && wrong(parameter, i) {
					row.Value = 0
				} else {
					right++
				}
				e.Samples = append(e.Samples, row)
			}
			moved := float64(right) / float64(n)
			e.Rows = append(e.Rows, scores.Row{Model: model, Data: "street", Transform: "tilt", Parameter: parameter, Measure: "accuracy", Statistic: "moved",
				Value: moved, Low: moved - 0.02, High: min(1, moved+0.02), Null: nan, N: n})
		}
	}
	return e
}

const street = "use: street\nreference: float\ntransforms: {tilt: 10}\nloss: 0.02\n"

func verdict(t *testing.T, text string, e Evidence) Verdict {
	t.Helper()
	p, err := Parse("policy.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	v, err := p.Judge(e)
	if err != nil {
		t.Fatal(err)
	}
	if len(v) != 1 || v[0].Model != "int8" {
		t.Fatalf("verdicts %+v, want one on int8", v)
	}
	return v[0]
}

// TestJudge checks verdicts, and the claims that decide them.
func TestJudge(t *testing.T) {
	t.Parallel()
	never := func(string, int) bool { return false }
	for name, c := range map[string]struct {
		text  string
		n     int
		wrong func(string, int) bool
		state State
		first string // claim: its text and where
		all   int    // claims
	}{
		"no loss":                {street, 1000, never, Pass, "loss of accuracy.clean against float <= 0.02 (street, clean)", 3},
		"few samples":            {street, 100, never, Undecided, "loss of accuracy.clean against float <= 0.02 (street, clean)", 3},
		"a tenth is lost at 10":  {street, 1000, func(p string, i int) bool { return p == "10" && i%10 == 0 }, Fail, "loss of accuracy.moved against float <= 0.02 (street, tilt=10)", 3},
		"a small group is open":  {street + "groups: [camera]", 1000, never, Undecided, "loss of accuracy.clean against float <= 0.02 (street, clean, camera=tunnel)", 9},
		"a group fails":          {street + "groups: [camera]", 3000, func(p string, i int) bool { return i%50 == 9 }, Fail, "loss of accuracy.moved against float <= 0.02 (street, tilt=5, camera=tunnel)", 9},
		"not tried so far":       {strings.Replace(street, "tilt: 10", "tilt: 12", 1), 1000, never, Undecided, "accuracy.moved (street, tilt)", 4},
		"between two values":     {strings.Replace(street, "tilt: 10", "tilt: 7", 1), 1000, never, Pass, "loss of accuracy.clean against float <= 0.02 (street, clean)", 3},
		"lost in between":        {strings.Replace(street, "tilt: 10", "tilt: 7.5", 1), 1000, func(p string, i int) bool { return p == "10" && i%5 == 0 }, Fail, "loss of accuracy.moved against float <= 0.02 (street, tilt=7.5, between 5 and 10)", 3},
		"keep, in between":       {"use: street\nmodels: [int8]\ntransforms: {tilt: 7}\nkeep: ['accuracy.moved >= 0.95']\n", 1000, func(p string, i int) bool { return i%5 == 0 && p == "10" }, Fail, "accuracy.moved >= 0.95 (street, tilt=7, between 5 and 10)", 2},
		"a weaker use":           {strings.Replace(street, "tilt: 10", "tilt: 5", 1), 1000, func(p string, i int) bool { return p == "10" }, Pass, "loss of accuracy.clean against float <= 0.02 (street, clean)", 2},
		"against its own":        {"use: street\nmodels: [int8]\ntransforms: {tilt: all}\nloss: 0.05\n", 1000, func(p string, i int) bool { return i%10 == 0 }, Fail, "loss of accuracy.moved against clean <= 0.05 (street, tilt=5)", 2},
		"least":                  {"use: street\nmodels: [int8]\ntransforms: {tilt: 10}\nleast: 0.7\n", 1000, func(p string, i int) bool { return i%5 == 0 }, Pass, "accuracy.moved >= 0.7 (street, tilt=5)", 2},
		"keep":                   {"use: street\nmodels: [int8]\nkeep: ['accuracy.moved@tilt >= 0.85']\n", 1000, func(p string, i int) bool { return i%5 == 0 && p == "10" }, Fail, "accuracy.moved@tilt >= 0.85 (street, tilt=10)", 2},
		"keep, up to a strength": {"use: street\nmodels: [int8]\ntransforms: {tilt: 5}\nkeep: ['accuracy.moved >= 0.85']\n", 1000, func(p string, i int) bool { return i%5 == 0 && p == "10" }, Pass, "accuracy.moved >= 0.85 (street, tilt=5)", 1},
		"keep an unknown score":  {"use: street\nmodels: [int8]\nkeep: ['accuracy.none >= 0.85']\n", 100, never, Undecided, "accuracy.none >= 0.85 (street, clean)", 1},
	} {
		v := verdict(t, c.text, evidence(c.n, c.wrong))
		if first := v.Claims[0].Text + " (" + v.Claims[0].Where() + ")"; v.State != c.state || first != c.first || len(v.Claims) != c.all {
			t.Errorf("%s: %s, first of %d claims %q (%s); want %s, of %d %q", name, v.State, len(v.Claims), first, v.Claims[0].Evidence(), c.state, c.all, c.first)
		}
	}
}

// TestNeeded checks that with the number of samples that a verdict asks for, the same loss is
// decided in some 80 % of draws.
func TestNeeded(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	draw := func(n int) Verdict {
		lost := make([]bool, n)
		for i := range lost {
			lost[i] = random.Float64() < 0.01
		}
		return verdict(t, strings.Replace(street, "tilt: 10", "tilt: 5", 1), evidence(n, func(_ string, i int) bool { return lost[i] }))
	}
	lost := evidence(300, func(_ string, i int) bool { return i%100 == 0 })
	v := verdict(t, strings.Replace(street, "tilt: 10", "tilt: 5", 1), lost)
	c := v.Claims[0]
	if v.State != Undecided || c.Transform != "tilt" || c.Needed < 600 || c.Needed > 2000 {
		t.Fatalf("%+v, want 600 to 2000 samples", v)
	}
	decided := 0
	const trials = 100
	for range trials {
		if draw(c.Needed).State == Pass {
			decided++
		}
	}
	if decided < trials*70/100 || decided > trials*97/100 {
		t.Errorf("%d of %d draws of %d samples are decided, want about 80 %%", decided, trials, c.Needed)
	}
}

// TestNeededToFail checks that with the number of samples that a verdict asks for to show that a
// claim does not hold, the model fails in some 80 % of draws, although it has many claims.
func TestNeededToFail(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(7, 8))
	const loss = 0.06
	draw := func(n int) Verdict {
		lost := make([]bool, n)
		for i := range lost {
			lost[i] = random.Float64() < loss
		}
		return verdict(t, street+"groups: [camera]", evidence(n, func(p string, i int) bool { return p == "10" && lost[i] }))
	}
	v := verdict(t, street+"groups: [camera]", evidence(200, func(p string, i int) bool { return p == "10" && i%50 < 3 }))
	at := slices.IndexFunc(v.Claims, func(c Claim) bool { return c.Parameter == "10" && c.Group == "" })
	c := v.Claims[at]
	if c.State != Undecided || c.Mean != loss {
		t.Fatalf("%+v, want a loss of %v that is not decided", c, loss)
	}
	fails := 0
	const trials = 100
	for range trials {
		w := draw(c.Needed)
		if w.Claims[slices.IndexFunc(w.Claims, func(c Claim) bool { return c.Parameter == "10" && c.Group == "" })].State == Fail {
			fails++
		}
	}
	if fails < trials*65/100 || fails > trials*98/100 {
		t.Errorf("%d of %d draws of %d samples fail, want about 80 %%", fails, trials, c.Needed)
	}
}

// TestEqualModelsDoNotFail simulates models that are as good as the limit allows, under ten claims:
// in at most 5 % they fail, and in at most 5 % they pass.
func TestEqualModelsDoNotFail(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 6))
	n := map[State]int{}
	const trials = 120
	for range trials {
		const samples = 400
		lost := map[string][]bool{"5": make([]bool, samples), "10": make([]bool, samples)}
		for _, l := range lost {
			for i := range l {
				l[i] = random.Float64() < 0.05
			}
		}
		text := "use: street\nmodels: [int8]\ntransforms: {tilt: 10}\nloss: 0.05\ngroups: [camera]\n"
		n[verdict(t, text, evidence(samples, func(p string, i int) bool { return lost[p][i] })).State]++
	}
	if n[Fail] > trials/20 || n[Pass] > trials/20 {
		t.Errorf("%v of %d at the limit", n, trials)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"loss: 0.1":                    "use",
		"use: x":                       "no limit",
		"use: x\nloss: -1":             "loss",
		"use: x\nlosses: 1":            `unknown key "losses"`,
		"use: x\nloss: 0.1\nscore: ei": "MEASURE.STATISTIC",
		"use: x\nloss: 0.1\nscore: effective-invariance.ei":         "needs a reference",
		"use: x\nkeep: ['accuracy.moved >= 90%']":                   "relative",
		"use: x\nkeep: ['accuracy.moved']":                          "tolerance",
		"use: x\nloss: 0.1\nmodels: [a]\nreference: a":              "against itself",
		"use: x\nloss: 0.1\ntransforms: {tilt: far}":                "a strength is a number",
		"use: x\nloss: 0.1\nmodels: [int4]":                         `the model "int4" (did you mean "int8"?); the study has float, int8`,
		"use: x\nloss: 2\nreference: float":                         "loss is 2, which no model can exceed",
		"use: x\nloss: 0.1\ntransforms: {rain: 1}":                  `the transformation "rain"; the study has tilt, fog`,
		"use: x\nloss: 0.1\ngroups: [site]":                         "list it under by",
		"use: x\nreference: float\nloss: 0.1\nscore: accuracy.drop": "no score accuracy.drop",
	} {
		p, err := Parse("policy.yaml", []byte(text))
		if err == nil {
			_, err = p.Judge(evidence(20, func(string, int) bool { return false }))
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}

// TestOnlyTheReference checks that a policy does not pass because no model is judged.
func TestOnlyTheReference(t *testing.T) {
	t.Parallel()
	p, err := Parse("policy.yaml", []byte(street))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Check(Names{Models: []string{"float"}, Transforms: []string{"tilt"}}); err == nil || !strings.Contains(err.Error(), "the only model") {
		t.Errorf("error %v", err)
	}
}

// TestWithoutLabels checks the error of a run whose data have no labels: it says why, and what to
// state in place.
func TestWithoutLabels(t *testing.T) {
	t.Parallel()
	e := evidence(20, func(string, int) bool { return false })
	e.Samples, e.Record.Skipped = nil, []scores.Skip{{Model: "int8", Data: "street", Measure: "accuracy", Why: "the data have no labels"}}
	p, err := Parse("policy.yaml", []byte(street))
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Judge(e)
	for _, want := range []string{"accuracy was skipped, since the data have no labels", "score: effective-invariance.ei", "prediction-agreement.disagreement <= 0.02"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// TestFiles checks JUnit's XML and SARIF of a verdict with claims of all three states, also by their
// schemas.
func TestFiles(t *testing.T) {
	t.Parallel()
	p, err := Parse("policy.yaml", []byte(street+"groups: [camera]"))
	if err != nil {
		t.Fatal(err)
	}
	verdicts, err := p.Judge(evidence(1000, func(p string, i int) bool { return p == "10" && i%10 == 0 }))
	if err != nil {
		t.Fatal(err)
	}
	count := map[State]int{}
	for _, c := range verdicts[0].Claims {
		count[c.State]++
	}
	if len(count) != 3 {
		t.Fatalf("states %v, want three", count)
	}
	var b bytes.Buffer
	if err := p.WriteJUnit(&b, verdicts); err != nil {
		t.Fatal(err)
	}
	junittest.Check(t, b.Bytes())
	var suites junit.Suites
	if err := xml.Unmarshal(b.Bytes(), &suites); err != nil {
		t.Fatal(err)
	}
	if s := suites.Suites[0]; suites.Name != "street" || s.Tests != 9 || s.Failures != count[Fail] || s.Errors != count[Undecided] || len(s.Cases) != 9 || s.Cases[0].Failure == nil {
		t.Errorf("JUnit %+v", s)
	}
	b.Reset()
	if err := p.WriteSARIF(&b, verdicts, "a policy:%.yaml", "1"); err != nil {
		t.Fatal(err)
	}
	schema, err := os.ReadFile("testdata/sarif-2.1.0.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := schematest.Compile(t, schema).Validate(schematest.Value(t, b.Bytes())); err != nil {
		t.Error(err)
	}
	var sarif struct {
		Version string
		Runs    []struct {
			Results []struct {
				Kind, Level, RuleID string
				Locations           []struct {
					PhysicalLocation struct{ ArtifactLocation struct{ URI string } }
				}
			}
			Tool struct {
				Driver struct{ Rules []struct{ ID string } }
			}
		}
	}
	if err := json.Unmarshal(b.Bytes(), &sarif); err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, r := range sarif.Runs[0].Results {
		if uri := r.Locations[0].PhysicalLocation.ArtifactLocation.URI; uri != "./a%20policy:%25.yaml" {
			t.Errorf("the policy's URI is %q", uri)
		}
		kinds[r.Kind+" "+r.Level]++
	}
	if want := map[string]int{"fail error": count[Fail], "open none": count[Undecided], "pass none": count[Pass]}; fmt.Sprint(kinds) != fmt.Sprint(want) || sarif.Version != "2.1.0" || len(sarif.Runs[0].Tool.Driver.Rules) != 2 {
		t.Errorf("SARIF %v, want %v", kinds, want)
	}
}

// TestInterpolation checks the value between two that were tried, and up to which strength all claims
// hold.
func TestInterpolation(t *testing.T) {
	t.Parallel()
	text := "use: street\nmodels: [int8]\ntransforms: {tilt: 8}\nleast: 0.7\n"
	v := verdict(t, text, evidence(1000, func(p string, i int) bool { return p == "10" && i%4 == 0 }))
	c := v.Claims[slices.IndexFunc(v.Claims, func(c Claim) bool { return c.Parameter == "8, between 5 and 10" })]
	if math.Abs(c.Mean-(1-0.25*0.6)) > 1e-9 || !(c.Low < c.Mean && c.Mean < c.High) || c.N != 1000 || c.State != Pass {
		t.Errorf("at 8 degrees %+v, want 0.85 of 1000 samples", c)
	}
	if fmt.Sprint(v.HoldsUpTo) != "map[tilt:8]" {
		t.Errorf("all claims hold up to %v, want 8", v.HoldsUpTo)
	}
	v = verdict(t, strings.Replace(text, "tilt: 8", "tilt: 10", 1), evidence(1000, func(p string, i int) bool { return p == "10" && i%2 == 0 }))
	if v.State != Fail || fmt.Sprint(v.HoldsUpTo) != "map[tilt:5]" {
		t.Errorf("%s, holds up to %v, want fail beyond 5", v.State, v.HoldsUpTo)
	}
}

// TestBetweenIsNotEasier checks that a strength between two that were tried is judged with intervals
// between theirs: predictions there are not known, and the mean of two varies less than one.
func TestBetweenIsNotEasier(t *testing.T) {
	t.Parallel()
	odd := func(p string, i int) bool { return (p == "5" && i%20 == 0) || (p == "10" && i%20 == 10) }
	at := func(strength string) Claim {
		v := verdict(t, "use: street\nmodels: [int8]\ntransforms: {tilt: "+strength+"}\nleast: 0.7\n", evidence(200, odd))
		return v.Claims[slices.IndexFunc(v.Claims, func(c Claim) bool { return strings.HasPrefix(c.Parameter, strength) })]
	}
	low, between, high := at("5"), at("7.5"), at("10")
	if want := (low.High - low.Low + high.High - high.Low) / 2; math.Abs(between.High-between.Low-want) > 1e-9 {
		t.Errorf("the interval at 7.5 is %v wide, want %v, the mean of those at 5 and 10", between.High-between.Low, want)
	}
}

// TestOrderOfClaims checks that undecided claims whose values do not keep the limit come first, and
// what further samples would show of each.
func TestOrderOfClaims(t *testing.T) {
	t.Parallel()
	v := verdict(t, street, evidence(100, func(p string, i int) bool { return p == "10" && i%20 == 0 }))
	if first := v.Claims[0]; first.Parameter != "10" || first.State != Undecided || !strings.Contains(first.Evidence(), "would show that it does not hold") {
		t.Errorf("the first claim is %s: %s", first.Where(), first.Evidence())
	}
	if last := v.Claims[len(v.Claims)-1]; last.State != Undecided || !strings.Contains(last.Evidence(), "would show that it holds") {
		t.Errorf("the last claim is %s: %s", last.Where(), last.Evidence())
	}
}

// TestKeepOfPairs checks a tolerance of a score between the reference and the judged model.
func TestKeepOfPairs(t *testing.T) {
	t.Parallel()
	e := evidence(100, func(string, int) bool { return false })
	e.Rows = append(e.Rows, scores.Row{Model: "float", OtherModel: "int8", Data: "street", Transform: "tilt", Parameter: "5", Measure: "prediction-agreement",
		Statistic: "disagreement", Value: 0.02, Low: 0.01, High: 0.03, N: 100})
	for limit, want := range map[string]State{"0.05": Pass, "0.005": Fail} {
		v := verdict(t, "use: street\nreference: float\nkeep: ['prediction-agreement.disagreement <= "+limit+"']\n", e)
		if v.State != want {
			t.Errorf("disagreement <= %s: %s, want %s (%+v)", limit, v.State, want, v.Claims)
		}
	}
}

// TestSummary checks that a verdict can be written and read.
func TestSummary(t *testing.T) {
	t.Parallel()
	p, err := Parse("policy.yaml", []byte(street+"groups: [camera]"))
	if err != nil {
		t.Fatal(err)
	}
	verdicts, err := p.Judge(evidence(1000, func(p string, i int) bool { return p == "10" && i%10 == 0 }))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(p.Summarise(verdicts))
	if err != nil {
		t.Fatal(err)
	}
	s, err := ParseSummary(raw)
	if err != nil {
		t.Fatal(err)
	}
	m := &s.Models[0]
	if got := m.Deciding(3); len(got) != 3 || got[0].State != Fail || got[0].Evidence == "" {
		t.Errorf("deciding are %+v", got)
	}
	if counts := m.Counts(); !strings.Contains(counts, "of 9 claims hold") || !strings.Contains(counts, "do not") {
		t.Errorf("counts %q", counts)
	}
	for _, bad := range []string{"", "{", "{}", `{"use": "x"}`} {
		if _, err := ParseSummary([]byte(bad)); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
}

// TestAlarm checks that a model does not pass whose scores mean something else than they seem to.
func TestAlarm(t *testing.T) {
	t.Parallel()
	for _, model := range []string{"int8", "float"} {
		e := evidence(1000, func(string, int) bool { return false })
		e.Rows = append(e.Rows, scores.Row{Model: model, Data: "street", Transform: "tilt", Measure: "accuracy", Statistic: "clean", Value: 0.27, Warning: "few; " + measure.OverconfidentWarning + " (0.78 on average)"})
		v := verdict(t, street, e)
		if c := v.Claims[0]; v.State != Undecided || c.Text != "the scores of "+model+" mean what they seem to" || !strings.Contains(c.Evidence(), measure.OverconfidentWarning) {
			t.Errorf("%s: %s, first %+v", model, v.State, c)
		}
		e.Record.Data = []scores.DataRecord{{Name: "street", Corruption: "fog"}}
		if v := verdict(t, street, e); v.State != Pass {
			t.Errorf("on corrupted data: %s", v.State)
		}
	}
}

// TestParameterValue checks that the parameter of two values is no number.
func TestParameterValue(t *testing.T) {
	t.Parallel()
	for parameter, want := range map[string]float64{"7.5": 7.5, "-10": -10, "7.5, between 5 and 10": 7.5, "3,4": 0, "": 0, "bilinear": 0} {
		if got, ok := ParameterValue(parameter); got != want || ok != (want != 0) {
			t.Errorf("%q: %v, %t, want %v", parameter, got, ok, want)
		}
	}
}
