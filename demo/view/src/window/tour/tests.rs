use super::measure::Measure;
use super::*;

fn played(name: &str) -> Tour {
    let mut tour = Tour::new(1);
    let at = CHAPTERS.iter().position(|chapter| chapter.name == name);
    (0..60).for_each(|_| tour.step(Vec2::ZERO).unwrap());
    tour.go_to(at.unwrap());
    let frames = CHAPTERS[tour.chapter].seconds * FRAMES_PER_SECOND;
    (0..frames).for_each(|_| tour.step(Vec2::ZERO).unwrap());
    let [compared, differed] = tour.compared;
    assert!(
        compared > frames / 2 && differed == 0,
        "{:?}",
        tour.compared
    );
    tour
}

fn values(tour: &Tour, measure: Measure) -> [f32; 4] {
    [LOCKSTEP, RAW, SMOOTHED, AUTO].map(|at| tour.meter.value(at, measure).unwrap())
}

#[test]
fn each_pane_behaves_over_a_bad_link_as_its_caption_promises() {
    let tour = played("BAD");
    let late = values(&tour, Measure::KeyLate);
    assert!(late[LOCKSTEP] >= 200.0, "{late:?}");
    assert_eq!(late[RAW..], [0.0; 3]);
    let jump = values(&tour, Measure::Jump);
    assert!(jump[RAW] > 2.0 * jump[SMOOTHED], "{jump:?}");
    assert!(jump[LOCKSTEP] < 2.0 && jump[AUTO] < 1.0, "{jump:?}");
    let off = values(&tour, Measure::Off);
    assert!(off[SMOOTHED] > 5.0 * off[AUTO], "{off:?}");
    assert!(off[LOCKSTEP] < 0.05 && off[AUTO] < 1.0, "{off:?}");
}

#[test]
fn only_plain_lockstep_stands_still_in_a_hiccup() {
    let stood = values(&played("HICCUP"), Measure::Stood);
    assert!(stood[LOCKSTEP] >= 400.0, "{stood:?}");
    assert_eq!(stood[RAW..], [0.0; 3]);
}

#[test]
fn a_blast_is_shown_immediately_and_corrected_later() {
    let tour = played("BLAST");
    let late = values(&tour, Measure::BlastLate);
    assert!(late[LOCKSTEP] >= 100.0 && late[AUTO] == 0.0, "{late:?}");
    assert!(values(&tour, Measure::BarrelOff)[AUTO] > 0.1);
}

#[test]
fn a_match_resumes_after_a_crash_with_equal_worlds() {
    let tour = played("CRASH");
    let stood = values(&tour, Measure::Stood);
    assert!(
        stood[LOCKSTEP] > stood[AUTO] && stood[LOCKSTEP] >= 1_000.0,
        "{stood:?}"
    );
    assert!(!tour.rehearsal.is_killed());
    let frame = tour.frames.back().unwrap();
    assert!(frame.panes[AUTO].player(FRIEND).is_some());
}

#[test]
fn each_caption_fits_its_place() {
    use super::paint::PAGE;
    use crate::window::atlas::Type;
    use crate::window::text::width;

    for chapter in &CHAPTERS {
        let head = width(Type::Head, 1.0, chapter.name) + width(Type::Body, 1.0, chapter.words);
        assert!(head < PAGE.x - 140.0, "{}: {head}", chapter.name);
        for line in chapter.captions.iter().flat_map(|(_, words)| words.lines()) {
            let line = line.replace("{ago}", "1000");
            let width = width(Type::Body, 1.0, &line);
            assert!(width < (PAGE.x - 20.0) * 0.5 - 104.0, "{line}: {width}");
        }
    }
}
