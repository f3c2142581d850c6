//! Records of one resource: a group, wherever its documents are.

use std::collections::HashMap;

use ahash::RandomState;

use super::bitset::BitSet;
use super::segment::Segment;
use crate::Result;

/// The groups of live documents that share a resource. Groups count from 1.
///
/// What several records of one source share (the address of their repository, say) tells no resource.
#[derive(Default)]
pub struct Groups {
    /// For each segment the group of each document, 0 if it is alone, and which documents have one.
    pub of: Vec<(Vec<u32>, BitSet)>,
    /// The record ids of each group, ascending.
    pub members: Vec<Vec<i64>>,
}

impl Groups {
    pub fn find(segments: &[Segment]) -> Result<Groups> {
        // Of each resource the documents, as segment and document; those that are alone are soon left out.
        let mut firsts: HashMap<u64, (u32, u32), RandomState> = HashMap::default();
        let mut shared: HashMap<u64, Vec<(u32, u32)>, RandomState> = HashMap::default();
        for (number, segment) in segments.iter().enumerate() {
            for (doc, &resource) in segment.data.columns.resources.iter().enumerate() {
                if resource == 0 || !segment.is_live(doc) {
                    continue;
                }
                let place = (number as u32, doc as u32);
                if let Some(places) = shared.get_mut(&resource) {
                    places.push(place);
                } else if let Some(first) = firsts.insert(resource, place) {
                    shared.insert(resource, vec![first, place]);
                }
            }
        }
        drop(firsts);
        let mut resources: Vec<(u64, Vec<(u32, u32)>)> = shared.into_iter().collect();
        resources.sort_unstable_by_key(|(resource, _)| *resource);
        let mut groups = Groups::default();
        for (_, places) in &mut resources {
            let mut origins = Vec::with_capacity(places.len());
            for &(segment, doc) in places.iter() {
                let column = segments[segment as usize].data.facet(0)?;
                origins.push(column.codes_of(doc as usize).first().map_or("", |&code| &column.values[code as usize]));
            }
            origins.sort_unstable();
            if origins.windows(2).any(|pair| pair[0] == pair[1]) {
                continue;
            }
            if groups.of.is_empty() {
                groups.of = segments.iter().map(|s| (vec![0; s.size()], BitSet::empty(s.size()))).collect();
            }
            let number = groups.members.len() as u32 + 1;
            let mut ids = Vec::with_capacity(places.len());
            for &(segment, doc) in places.iter() {
                let (of, grouped) = &mut groups.of[segment as usize];
                of[doc as usize] = number;
                grouped.insert(doc as usize);
                ids.push(segments[segment as usize].data.columns.ids[doc as usize]);
            }
            ids.sort_unstable();
            groups.members.push(ids);
        }
        Ok(groups)
    }

    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The group of a document; 0 if it is alone.
    pub fn group(&self, segment: usize, doc: usize) -> u32 {
        self.of.get(segment).map_or(0, |(of, _)| of[doc])
    }

    /// A record's id, and those of the others in its group, ascending.
    pub fn with_others(&self, id: i64, group: u32) -> Vec<i64> {
        let mut ids = vec![id];
        if group > 0 {
            ids.extend(self.members[group as usize - 1].iter().copied().filter(|&other| other != id));
        }
        ids
    }
}
