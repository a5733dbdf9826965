/** The wheel over a box that scrolls: it belongs to the page until the box is clicked, as over the mask. */

const UNITS = [1, 20, 400]; // pixels, lines, pages

export function passOn(event: WheelEvent): void {
  const box = event.currentTarget as HTMLElement;
  const by = event.deltaY * (UNITS[event.deltaMode] ?? 1);
  if (event.ctrlKey || event.shiftKey || box.matches(':focus') || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
    return; // zoom, along the lines, or wanted
  }
  event.preventDefault();
  for (let over = box.parentElement; over; over = over.parentElement) {
    const before = over.scrollTop;
    if (over === document.scrollingElement || /auto|scroll/.test(getComputedStyle(over).overflowY)) {
      over.scrollTop += by;
    }
    if (over.scrollTop !== before) {
      return;
    }
  }
}
