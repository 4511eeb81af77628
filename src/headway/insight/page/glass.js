export function mount(element, { record }) { element.textContent = record.target.text; }
