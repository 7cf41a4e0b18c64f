package html

import (
	"cmp"
	"fmt"
	"html"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/noether-ml/noether/internal/policy"
	"github.com/noether-ml/noether/internal/report"
	"github.com/noether-ml/noether/scores"
)

// A lossPoint is a value at a strength of a transformation, with its interval.
type lossPoint struct{ x, value, low, high float64 }

// A lossChart shows the score of a judged model and of its reference over the values of a
// transformation, and below the loss, of all samples and of the group where it may be largest.
type lossChart struct {
	claim  policy.ClaimSummary // on all samples
	curves map[string][]lossPoint
	losses map[string][]lossPoint // by group; "": all samples
	worst  string                 // group with the highest end of an interval; "": none
}

const maxLossCharts = 6 // of a model

// lossesOf draws the losses of a judged model, on which its claims are: a chart for each
// transformation with several values.
func (p *page) lossesOf(m policy.ModelSummary) template.HTML {
	var charts []*lossChart
	for _, c := range m.Claims {
		x, ok := policy.ParameterValue(c.Parameter)
		if !ok || c.Value == nil || c.Low == nil || c.High == nil || c.Limit == nil || !strings.HasPrefix(c.Text, policy.LossOf) {
			continue
		}
		at := slices.IndexFunc(charts, func(k *lossChart) bool { return k.claim.Data == c.Data && k.claim.Transform == c.Transform })
		if at < 0 {
			at, charts = len(charts), append(charts, &lossChart{claim: c, losses: map[string][]lossPoint{}})
		}
		charts[at].losses[c.Group] = append(charts[at].losses[c.Group], lossPoint{x, float64(*c.Value), float64(*c.Low), float64(*c.High)})
	}
	charts = slices.DeleteFunc(charts, func(k *lossChart) bool { return len(k.losses[""]) < 2 })
	slices.SortFunc(charts, func(a, b *lossChart) int {
		return cmp.Or(strings.Compare(a.claim.Data, b.claim.Data), strings.Compare(a.claim.Transform, b.claim.Transform))
	})
	var out strings.Builder
	for _, k := range charts[:min(len(charts), maxLossCharts)] {
		highest := math.Inf(-1)
		for group, points := range k.losses {
			slices.SortFunc(points, byStrength)
			for _, at := range points {
				if group != "" && (at.high > highest || at.high == highest && group < k.worst) {
					highest, k.worst = at.high, group
				}
			}
		}
		k.curves = p.curvesOf(k.claim, m.Model)
		p.drawLosses(&out, k, m.Model)
	}
	return template.HTML(out.String())
}

func byStrength(a, b lossPoint) int { return cmp.Compare(a.x, b.x) }

// curvesOf returns the policy's score over the values of the claim's transformation, of the model and
// of the reference.
func (p *page) curvesOf(c policy.ClaimSummary, model string) map[string][]lossPoint {
	out := map[string][]lossPoint{}
	for _, r := range report.OverTrials(p.rows) {
		x, ok := policy.ParameterValue(r.Parameter)
		if ok && r.Measure+"."+r.Statistic == p.Verdict.Score && r.Data == c.Data && r.Transform == c.Transform && r.Layer == "" && r.Factor == "" && r.Variant == "" &&
			r.OtherModel == "" && (r.Model == model || r.Model == p.Verdict.Reference) {
			out[r.Model] = append(out[r.Model], lossPoint{x, r.Value, r.Low, r.High})
		}
	}
	for _, points := range out {
		slices.SortFunc(points, byStrength)
	}
	return out
}

// A plot is an area of a picture with its ranges of values.
type plot struct{ left, top, width, height, xLow, xHigh, low, high float64 }

func (a plot) x(v float64) float64 { return a.left + a.width*(v-a.xLow)/(a.xHigh-a.xLow) }
func (a plot) y(v float64) float64 {
	return a.top + a.height*(1-(min(max(v, a.low), a.high)-a.low)/(a.high-a.low))
}

// line writes a horizontal line at a value with its number beside it.
func (a plot) line(b *strings.Builder, v float64, class string) {
	fmt.Fprintf(b, `<line class="%s" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1[4]f"/><text x="%.1f" y="%.1f" text-anchor="end">%s</text>`,
		class, a.left, a.left+a.width, a.y(v), a.left-6, a.y(v)+4, report.Number(v))
}

// curve writes points with their intervals, moved to the right by some pixels.
func (a plot) curve(b *strings.Builder, points []lossPoint, colour, dashes string, right float64) {
	var at []string
	for _, q := range points {
		at = append(at, fmt.Sprintf("%.1f,%.1f", a.x(q.x)+right, a.y(q.value)))
	}
	fmt.Fprintf(b, `<g stroke="%s" fill="%[1]s"><polyline fill="none" stroke-width="1.6" stroke-dasharray="%s" points="%s"/>`, colour, dashes, strings.Join(at, " "))
	for _, q := range points {
		x := a.x(q.x) + right
		if !math.IsNaN(q.low) && !math.IsNaN(q.high) {
			fmt.Fprintf(b, `<line stroke-width="1.6" x1="%.1f" x2="%.1[1]f" y1="%.1f" y2="%.1f"/>`, x, a.y(q.low), a.y(q.high))
		}
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="2.6"/>`, x, a.y(q.value))
	}
	b.WriteString(`</g>`)
}

// drawLosses writes a chart as a figure that says how to read it.
func (p *page) drawLosses(b *strings.Builder, k *lossChart, model string) {
	limit := float64(*k.claim.Limit)
	above := plot{left: 46, top: 8, width: 300, height: 96, xLow: math.Inf(1), xHigh: math.Inf(-1), low: math.Inf(1), high: math.Inf(-1)}
	below := above
	below.top, below.low, below.high = above.top+above.height+24, -limit, 2*limit
	groups := []string{""}
	if k.worst != "" {
		groups = append(groups, k.worst)
	}
	var strengths []float64
	for _, g := range groups {
		for _, q := range k.losses[g] {
			below.low, below.high = min(below.low, q.low), max(below.high, q.high)
			strengths = append(strengths, q.x)
		}
	}
	slices.Sort(strengths)
	below.xLow, below.xHigh = strengths[0], strengths[len(strengths)-1]
	above.xLow, above.xHigh = below.xLow, below.xHigh
	var models []string // with a curve, the reference first
	for _, name := range []string{p.Verdict.Reference, model} {
		k.curves[name] = slices.DeleteFunc(k.curves[name], func(q lossPoint) bool { return q.x < above.xLow || q.x > above.xHigh })
		for _, q := range k.curves[name] {
			above.low, above.high = min(above.low, q.value, q.low), max(above.high, q.value, q.high)
		}
		if len(k.curves[name]) > 0 {
			models = append(models, name)
		}
	}
	if below.xLow == below.xHigh || len(models) == 0 || above.low == above.high {
		return
	}
	text := func(s string) string { return html.EscapeString(report.Printable(s)) }
	bottom := below.top + below.height
	under := k.claim.Transform
	if len(p.Record.Data) > 1 {
		under += ", " + k.claim.Data
	}
	reading := fmt.Sprintf("Above: %s of %s", p.Verdict.Score, strings.Join(models, " and "))
	loss := fmt.Sprintf("Below: what %s loses", model)
	if p.Verdict.Reference != "" {
		loss += " against " + p.Verdict.Reference
	}
	if k.worst != "" {
		loss += ", of all samples and, dashed, of " + k.worst
	}
	reading += fmt.Sprintf(". %s; red: the limit, %s.", loss, report.Number(limit))

	fmt.Fprintf(b, `<figure class="losses"><figcaption><b>%s</b>`, text(under))
	for _, name := range models {
		fmt.Fprintf(b, ` <svg width="14" height="10" aria-hidden="true"><circle cx="7" cy="5" r="4" fill="%s"/></svg> %s`, p.colourOf(name), text(name))
	}
	fmt.Fprintf(b, `</figcaption><svg viewBox="0 0 356 %.0f" role="img" aria-label="%s">`, bottom+36, text(under+". "+reading))
	above.line(b, above.low, "rule")
	above.line(b, above.high, "rule")
	for i, name := range models {
		above.curve(b, k.curves[name], p.colourOf(name), "none", 3*float64(i))
	}
	if below.y(0)-below.y(limit) >= 12 { // else their numbers would overlap
		below.line(b, 0, "rule")
	}
	below.line(b, limit, "limit")
	for i, g := range groups {
		below.curve(b, k.losses[g], []string{"var(--text)", "var(--muted)"}[i], []string{"none", "3 3"}[i], 4*float64(i))
	}
	last := math.Inf(-1)
	for _, v := range strengths {
		if x := below.x(v); x-last >= 26 {
			last = x
			fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`, x, bottom+15, strconv.FormatFloat(v, 'g', 4, 64))
		}
	}
	at := slices.IndexFunc(p.Transforms, func(t scores.TransformRecord) bool { return t.Name == k.claim.Transform })
	if at >= 0 {
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`, below.left+below.width/2, bottom+31, text(p.Transforms[at].Parameter))
	}
	fmt.Fprintf(b, `</svg><p class="key">%s</p></figure>`, text(reading))
}

// colourOf returns the colour of a model in all charts of the page.
func (p *page) colourOf(model string) string {
	at := max(0, slices.Index(scores.DistinctValues(p.rows, report.Describe(p.rows, p.Record.Measures).ModelLabel), model))
	return fmt.Sprintf("var(--series-%d)", report.LookOf(at).Colour)
}
